//! Permits: signed statements of a host that one call may be prepared or run.
//!
//! A permit is signed with a secret that host and workers share (HMAC-SHA-256), or with the nkey of
//! the host (Ed25519), of which the workers know the public key alone. Its text is the JSON of the
//! permit and the signature, both in Base64, with a dot between them.
//!
//! **Invariant:** nothing of a permit is read before its signature was checked.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nkeys::{KeyPair, KeyPairType};
use serde::{Deserialize, Serialize};

use crate::error::RemoteError;

/// What signatures begin with, so that no other message of the same key can be one.
const DOMAIN: &[u8] = b"tool-sdk permit 1\0";

/// The fewest bytes of a shared secret.
const MIN_SECRET: usize = 32;

/// The longest permit that is read, in bytes.
const MAX_TEXT: usize = 16 << 10;

/// How much later a permit is still accepted, because clocks differ.
const CLOCK_SKEW: Duration = Duration::from_secs(2);

/// What a permit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum PermitPurpose {
    /// To describe a call without running it.
    Prepare,
    /// To run a call.
    Run,
    /// To stop a worker once its running calls have ended.
    Drain,
    /// To tell a running call what the host answers to a question of its tool.
    Answer,
}

/// A statement of a host that one call may be prepared or run, once, until a deadline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Permit {
    /// What it allows.
    pub purpose: PermitPurpose,
    /// The namespace of the worker.
    pub namespace: String,
    /// The id of the worker; empty for any worker that may prepare the call.
    pub worker: String,
    /// The user for whom the call is made.
    pub user: Option<String>,
    /// The agent for whom the call is made.
    pub agent: Option<String>,
    /// The session of the host.
    pub session: String,
    /// The id of the call.
    pub call: String,
    /// The worker's name of the tool.
    pub tool: String,
    /// The hash of the tool's definition.
    pub definition: String,
    /// The fingerprint of the call that may run, or a hash of the arguments to prepare, or of a
    /// question and its answer.
    pub binding: String,
    /// When it expires, in milliseconds since 1970.
    pub expires_ms: u64,
    /// 128 random bits; a permit with a known nonce is refused.
    pub nonce: String,
}

impl Permit {
    /// Creates a permit of `purpose` that expires after `lifetime`.
    pub(crate) fn new(purpose: PermitPurpose, namespace: &str, lifetime: Duration) -> Self {
        let lifetime = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        let text = String::new;
        Self {
            purpose,
            namespace: namespace.to_owned(),
            worker: text(),
            user: None,
            agent: None,
            session: text(),
            call: text(),
            tool: text(),
            definition: text(),
            binding: text(),
            expires_ms: now_ms().saturating_add(lifetime),
            nonce: random_id(),
        }
    }

    /// Returns the time until it expires.
    pub(crate) fn remaining(&self) -> Duration {
        Duration::from_millis(self.expires_ms.saturating_sub(now_ms()))
    }

    /// Whether it has expired.
    pub(crate) fn is_expired(&self) -> bool {
        let skew = u64::try_from(CLOCK_SKEW.as_millis()).unwrap_or(0);
        self.expires_ms.saturating_add(skew) < now_ms()
    }
}

/// Returns the milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}

/// Returns 128 random bits as text.
pub(crate) fn random_id() -> String {
    let mut bits = [0; 16];
    // Without random numbers every permit has the same nonce, and workers accept one of them.
    let _ = getrandom::fill(&mut bits);
    format!("{:032x}", u128::from_be_bytes(bits))
}

/// Whether the text is one that [`random_id`] returns, so that it can be part of a subject.
pub(crate) fn is_random_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Why a permit is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PermitError {
    /// It is no permit.
    #[error("it is no permit")]
    Malformed,
    /// Its signature is not that of the host.
    #[error("its signature is not valid")]
    Signature,
}

/// The key with which a host signs permits.
///
/// # Examples
///
/// ```
/// use tool_sdk::remote::{PermitSigner, PermitVerifier};
///
/// let secret = "7f1c0b54e2a94d6e8f0a3b2c1d4e5f60";
/// let signer = PermitSigner::from_key(secret)?;
/// let verifier = PermitVerifier::from_key(secret)?;
/// # let _ = (signer, verifier);
/// # Ok::<(), tool_sdk::remote::RemoteError>(())
/// ```
#[derive(Clone)]
pub struct PermitSigner(Arc<SigningKey>);

enum SigningKey {
    Secret(Vec<u8>),
    Nkey(Box<KeyPair>),
}

impl fmt::Debug for PermitSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermitSigner")
    }
}

impl PermitSigner {
    /// Reads a key: the seed of an nkey of a user (`SU…`), or a shared secret of at least 32 bytes.
    ///
    /// # Errors
    ///
    /// Fails when the key is neither.
    pub fn from_key(key: &str) -> Result<Self, RemoteError> {
        let key = key.trim();
        if key.starts_with('U') && KeyPair::from_public_key(key).is_ok() {
            return Err(RemoteError::Config(
                "the host signs permits, so its key must be a seed (SU…), not a public key".into(),
            ));
        }
        if let Ok(pair) = KeyPair::from_seed(key) {
            return match pair.key_pair_type() {
                KeyPairType::User => Ok(Self(Arc::new(SigningKey::Nkey(Box::new(pair))))),
                _ => Err(RemoteError::Config("the seed must be that of a user (SU…)".into())),
            };
        }
        read_secret(key).map(|secret| Self(Arc::new(SigningKey::Secret(secret))))
    }

    /// Returns the text of a signed permit.
    pub(crate) fn sign(&self, permit: &Permit) -> Result<String, RemoteError> {
        let json = serde_json::to_vec(permit).map_err(RemoteError::request)?;
        let message = [DOMAIN, &json].concat();
        let signature = match &*self.0 {
            SigningKey::Secret(secret) => hmac_sha256::HMAC::mac(&message, secret).to_vec(),
            SigningKey::Nkey(pair) => pair.sign(&message).map_err(RemoteError::request)?,
        };
        Ok(format!("{}.{}", URL_SAFE_NO_PAD.encode(&json), URL_SAFE_NO_PAD.encode(signature)))
    }
}

/// The key with which a worker checks permits.
pub struct PermitVerifier(VerifyingKey);

enum VerifyingKey {
    Secret(Vec<u8>),
    Nkey(Box<KeyPair>),
}

impl fmt::Debug for PermitVerifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PermitVerifier")
    }
}

impl PermitVerifier {
    /// Reads a key: the public nkey of the host (`U…`), or the secret that host and workers share.
    ///
    /// # Errors
    ///
    /// Fails when the key is neither, and for the seed of an nkey, which only the host may have.
    pub fn from_key(key: &str) -> Result<Self, RemoteError> {
        let key = key.trim();
        if KeyPair::from_seed(key).is_ok() {
            return Err(RemoteError::Config(
                "a worker only checks permits: give it the public key (U…), not the seed".into(),
            ));
        }
        if key.starts_with('U')
            && let Ok(pair) = KeyPair::from_public_key(key)
        {
            return Ok(Self(VerifyingKey::Nkey(Box::new(pair))));
        }
        read_secret(key).map(|secret| Self(VerifyingKey::Secret(secret)))
    }

    /// Checks the signature of a permit and reads it.
    pub(crate) fn verify(&self, text: &str) -> Result<Permit, PermitError> {
        if text.len() > MAX_TEXT {
            return Err(PermitError::Malformed);
        }
        let (json, signature) = text.split_once('.').ok_or(PermitError::Malformed)?;
        let decode = |part: &str| URL_SAFE_NO_PAD.decode(part).map_err(|_| PermitError::Malformed);
        let (json, signature) = (decode(json)?, decode(signature)?);
        let message = [DOMAIN, &json].concat();
        let is_valid = match &self.0 {
            VerifyingKey::Secret(secret) => <&[u8; 32]>::try_from(&*signature)
                .is_ok_and(|signature| hmac_sha256::HMAC::verify(&message, secret, signature)),
            VerifyingKey::Nkey(pair) => pair.verify(&message, &signature).is_ok(),
        };
        if !is_valid {
            return Err(PermitError::Signature);
        }
        serde_json::from_slice(&json).map_err(|_| PermitError::Malformed)
    }
}

/// Whether the text looks like an nkey: a seed or a public key in Base32, of any kind.
fn looks_like_nkey(key: &str) -> bool {
    let is_base32 = |byte: u8| byte.is_ascii_uppercase() || (b'2'..=b'7').contains(&byte);
    (56..=58).contains(&key.len()) && key.bytes().all(is_base32)
}

/// Reads a shared secret. A public key of another kind, or with a typing error, is none: it is no
/// secret.
fn read_secret(key: &str) -> Result<Vec<u8>, RemoteError> {
    if looks_like_nkey(key) {
        return Err(RemoteError::Config(
            "the permit key looks like an nkey, but is not that of a user: a host needs the seed \
             (SU…), a worker the public key (U…)"
                .into(),
        ));
    }
    if key.len() < MIN_SECRET {
        return Err(RemoteError::Config(format!(
            "the permit key must be an nkey, or a secret of at least {MIN_SECRET} bytes, such as \
             the output of `openssl rand -hex 32`"
        )));
    }
    Ok(key.as_bytes().to_vec())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn permit() -> Permit {
        let mut permit = Permit::new(PermitPurpose::Run, "demo", Duration::from_secs(10));
        permit.tool = "look_up".into();
        permit.binding = "f".repeat(64);
        permit
    }

    fn key_pairs() -> [(PermitSigner, PermitVerifier); 2] {
        let nkey = KeyPair::new_user();
        let signer = |key: &str| PermitSigner::from_key(key).unwrap();
        let verifier = |key: &str| PermitVerifier::from_key(key).unwrap();
        [
            (signer(SECRET), verifier(SECRET)),
            (signer(&nkey.seed().unwrap()), verifier(&nkey.public_key())),
        ]
    }

    #[test]
    fn a_signed_permit_is_read_back() {
        for (signer, verifier) in key_pairs() {
            let permit = permit();
            assert_eq!(verifier.verify(&signer.sign(&permit).unwrap()), Ok(permit));
        }
    }

    // Everyone may know a public key, so it is no shared secret.
    #[test]
    fn a_key_of_another_kind_is_no_secret() {
        let account = KeyPair::new_account();
        let mut mistyped = KeyPair::new_user().public_key();
        mistyped.replace_range(10..12, "AA");
        for key in [account.public_key(), account.seed().unwrap(), mistyped] {
            assert!(PermitSigner::from_key(&key).is_err(), "{key}");
            assert!(PermitVerifier::from_key(&key).is_err(), "{key}");
        }
    }

    #[test]
    fn permits_of_other_keys_are_refused() {
        let [(secret, by_secret), (nkey, by_nkey)] = key_pairs();
        let [(_, _), (_, other_nkey)] = key_pairs();
        let other = PermitVerifier::from_key(&SECRET.replace('0', "1")).unwrap();
        for (signer, verifier) in
            [(&secret, &by_nkey), (&secret, &other), (&nkey, &by_secret), (&nkey, &other_nkey)]
        {
            let text = signer.sign(&permit()).unwrap();
            assert_eq!(verifier.verify(&text), Err(PermitError::Signature));
        }
    }

    #[test]
    fn keys_are_told_apart() {
        let pair = KeyPair::new_user();
        assert!(PermitSigner::from_key(&pair.public_key()).is_err());
        assert!(PermitVerifier::from_key(&pair.seed().unwrap()).is_err());
        assert!(PermitSigner::from_key(&KeyPair::new_account().seed().unwrap()).is_err());
        assert!(PermitSigner::from_key("short").is_err());
        assert!(PermitVerifier::from_key("").is_err());
    }

    proptest! {
        // Ed25519 is slow without optimization.
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn a_changed_permit_is_refused(at in any::<prop::sample::Index>(), bits in 1_u8..128) {
            for (signer, verifier) in key_pairs() {
                let text = signer.sign(&permit()).unwrap();
                let mut bytes = text.clone().into_bytes();
                let at = at.index(bytes.len());
                bytes[at] ^= bits;
                if let Ok(changed) = String::from_utf8(bytes) {
                    prop_assert!(verifier.verify(&changed).is_err(), "{} {}", text, changed);
                }
            }
        }

        #[test]
        fn noise_is_no_permit(text in ".{0,200}") {
            for (_, verifier) in key_pairs() {
                prop_assert!(verifier.verify(&text).is_err());
            }
        }
    }
}
