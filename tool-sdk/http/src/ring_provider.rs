//! The cryptography of `jsonwebtoken`, by ring, which TLS uses as well.
//!
//! **Invariant:** only asymmetric signatures are verified, and none is made.

use jsonwebtoken::crypto::{CryptoProvider, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{Error, ErrorKind};
use jsonwebtoken::signature::{Error as SignatureError, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256,
    RSA_PKCS1_2048_8192_SHA384, RSA_PKCS1_2048_8192_SHA512, RSA_PSS_2048_8192_SHA256,
    RSA_PSS_2048_8192_SHA384, RSA_PSS_2048_8192_SHA512, RsaParameters, RsaPublicKeyComponents,
    UnparsedPublicKey, VerificationAlgorithm,
};

static RING_PROVIDER: CryptoProvider = CryptoProvider {
    signer_factory: |_, _| Err(unsupported()),
    verifier_factory: |algorithm, key| {
        let verifier = RingVerifier { algorithm: *algorithm, key: key.clone() };
        Ok(Box::new(verifier))
    },
    key_utils: KeyUtils::new_unimplemented(),
};

/// Lets `jsonwebtoken` use ring, unless the host installed another provider, which then stays.
pub(super) fn install_ring_provider() {
    let _ = RING_PROVIDER.install_default();
}

fn unsupported() -> Error {
    ErrorKind::UnsupportedAlgorithm.into()
}

/// Verifies signatures of one key.
struct RingVerifier {
    algorithm: Algorithm,
    key: DecodingKey,
}

impl JwtVerifier for RingVerifier {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

impl Verifier<Vec<u8>> for RingVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> Result<(), SignatureError> {
        let (family, point): (_, Option<&dyn VerificationAlgorithm>) = match self.algorithm {
            Algorithm::ES256 => (AlgorithmFamily::Ec, Some(&ECDSA_P256_SHA256_FIXED)),
            Algorithm::ES384 => (AlgorithmFamily::Ec, Some(&ECDSA_P384_SHA384_FIXED)),
            Algorithm::EdDSA => (AlgorithmFamily::Ed, Some(&ED25519)),
            _ => (AlgorithmFamily::Rsa, None),
        };
        if self.key.family() != family {
            return Err(SignatureError::new());
        }
        let verified = match (self.key.kind(), point, rsa_parameters(self.algorithm)) {
            (DecodingKeyKind::SecretOrDer(bytes), Some(algorithm), _) => {
                UnparsedPublicKey::new(algorithm, bytes).verify(message, signature)
            }
            (DecodingKeyKind::RsaModulusExponent { n, e }, None, Some(parameters)) => {
                RsaPublicKeyComponents { n, e }.verify(parameters, message, signature)
            }
            _ => return Err(SignatureError::new()),
        };
        verified.map_err(|_| SignatureError::new())
    }
}

fn rsa_parameters(algorithm: Algorithm) -> Option<&'static RsaParameters> {
    Some(match algorithm {
        Algorithm::RS256 => &RSA_PKCS1_2048_8192_SHA256,
        Algorithm::RS384 => &RSA_PKCS1_2048_8192_SHA384,
        Algorithm::RS512 => &RSA_PKCS1_2048_8192_SHA512,
        Algorithm::PS256 => &RSA_PSS_2048_8192_SHA256,
        Algorithm::PS384 => &RSA_PSS_2048_8192_SHA384,
        Algorithm::PS512 => &RSA_PSS_2048_8192_SHA512,
        _ => return None,
    })
}
