//! Redacted secrets, code that must stay unchanged, and properties of both.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(Redactor::default().redact(text), expected);
}

// LG1
#[test]
fn redacts_authorization_headers() {
    check("Authorization: Bearer abc.def-123", "Authorization: Bearer [redacted]");
    check(
        "authorization: basic dXNlcjpwYXNz\r\nHost: a",
        "authorization: basic [redacted]\r\nHost: a",
    );
    check(r#"{"Authorization": "token t0p"}"#, r#"{"Authorization": "token [redacted]"}"#);
    check(
        "curl -H 'Proxy-Authorization: Basic x=='",
        "curl -H 'Proxy-Authorization: Basic [redacted]'",
    );
    check("sent bearer 0123456789abcdef to it", "sent bearer [redacted] to it");
}

// LG1
#[test]
fn redacts_every_line_of_a_known_secret() {
    let redactor = Redactor::new(["alpha-secret-one\r\n  beta-secret-two\n}\n"]);
    for (text, expected) in [
        ("+alpha-secret-one\n+  beta-secret-two\n+}", "+[redacted]\n+  [redacted]\n+}"),
        ("     1\talpha-secret-one", "     1\t[redacted]"),
        ("alpha-secret-one\r\n  beta-secret-two\n}", "[redacted]"),
        ("alpha-secret", "alpha-secret"),
    ] {
        assert_eq!(redactor.redact(text), expected);
    }
}

#[test]
fn redacts_user_and_password_in_urls() {
    check("https://ada:s3cret@example.org/x", "https://[redacted]@example.org/x");
    check("postgres://app:p@ss:w0rd@db:5432/x", "postgres://[redacted]@db:5432/x");
    check("redis://:pw@cache", "redis://[redacted]@cache");
    check("https://t0ken:x-oauth-basic@github.com", "https://[redacted]@github.com");
}

#[test]
fn redacts_tokens_by_pattern() {
    let letters = "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8";
    for token in [
        format!("sk-{letters}"),
        format!("sk-proj-{letters}"),
        format!("sk_live_{letters}"),
        format!("ghp_{letters}"),
        format!("gho_{letters}"),
        format!("github_pat_{letters}"),
        format!("glpat-{letters}"),
        "xoxb-123456789012-abcdef".to_owned(),
        format!("npm_{letters}"),
        format!("hf_{letters}"),
        "AKIAIOSFODNN7EXAMPLE".to_owned(),
        format!("AIza{}", &letters[..35]),
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl".to_owned(),
        format!("-----BEGIN PRIVATE KEY-----\n{letters}\n-----END PRIVATE KEY-----"),
        format!(
            "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\n\n{letters}\n-----END RSA PRIVATE KEY-----"
        ),
        format!("-----BEGIN PRIVATE KEY-----\\n{letters}\\n-----END PRIVATE KEY-----"),
        format!("-----BEGIN EC PRIVATE KEY-----\n{letters}{letters}"),
    ] {
        check(&token, REDACTED);
        check(&format!("key=\"{token}\";"), "key=\"[redacted]\";");
    }
}

#[test]
fn keeps_ordinary_code() {
    for code in [
        "let authorization: Authorization = request.headers().authorization();",
        r#"headers.insert("Authorization", format!("Bearer {token}"));"#,
        "// Authorization: Bearer <token>",
        "the bearer authentication_scheme of RFC six",
        r#"format!("https://{user}:{password}@{host}")"#,
        "ssh://git@github.com/ada/engine.git and git@github.com:ada/engine.git",
        "http://localhost:8080/@scope/package?at=a@b.c",
        ".sk-loading-spinner-outer-circle { color: red }",
        r#"const HEADER: &str = "-----BEGIN PRIVATE KEY-----";"#,
        "fn token(&self) -> Token { self.password.secret() }",
        "-----BEGIN PUBLIC KEY-----\nMIIB\n-----END PUBLIC KEY-----",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "[redacted]",
        "",
    ] {
        assert!(matches!(Redactor::default().redact(code), Cow::Borrowed(_)), "{code}");
    }
    for code in [include_str!("../pipeline/mod.rs"), include_str!("../audit/mod.rs")] {
        assert!(matches!(Redactor::default().redact(code), Cow::Borrowed(_)));
    }
}

#[test]
fn redacts_known_values_anywhere() {
    let redactor =
        Redactor::new(["abcdefgh12", "gh12345678", "short", "redacted", " trimmed one\n"]);
    for (text, expected) in [
        ("x=abcdefgh12;", "x=[redacted];"),
        ("abcdefgh12abcdefgh12", "[redacted][redacted]"),
        ("abcdefgh12345678", "[redacted]"),
        ("short and redacted stay", "short and redacted stay"),
        ("a trimmed one", "a [redacted]"),
        ("https://a:abcdefgh12@h", "https://[redacted]@h"),
    ] {
        assert_eq!(redactor.redact(text), expected);
    }
    assert_eq!(format!("{redactor:?}"), "Redactor { known: 3 }");
}

#[test]
fn redacts_values_of_secret_keys() {
    let mut value = json!({
        "password": "pw", "API-Key": "k", "access_token": ["a", "b"], "max_tokens": 5,
        "token": 7, "clientSecret": "", "nested": [{"Set-Cookie": "a=b"}],
        "url": "https://a:b@c", "tokenizer": "bpe", "s3cret value": 1
    });
    Redactor::new(["s3cret value"]).redact_value(&mut value);
    let expected = json!({
        "password": REDACTED, "API-Key": REDACTED, "access_token": [REDACTED, REDACTED], "max_tokens": 5,
        "token": 7, "clientSecret": "", "nested": [{"Set-Cookie": REDACTED}],
        "url": "https://[redacted]@c", "tokenizer": "bpe", "[redacted]": 1
    });
    assert_eq!(value, expected);
}

// CH1, LG1
#[test]
fn detects_secret_variable_names() {
    let vars = [
        ("GITHUB_TOKEN", "t"),
        ("aws_secret_access_key", "k"),
        ("PGPASSWORD", "p"),
        ("PROXY_AUTHORIZATION", "a"),
        ("GIT_AUTHOR_NAME", "Ada Lovelace"),
        ("XAUTHORITY", "x"),
        ("HOME", "/home/ada"),
    ];
    let vars = vars.into_iter().map(|(name, value)| (name.into(), value.into()));
    assert_eq!(secret_env_values(vars), ["t", "k", "p", "a", "x"]);
}

proptest! {
    #[test]
    fn redacts_all_known_values(
        secrets in prop::collection::vec("[a-d]{8,12}", 1..5),
        text in "[a-d ]{0,60}",
        at in 0_usize..5,
    ) {
        let redactor = Redactor::new(&secrets);
        let text = format!("{text}{}{text}", secrets[at % secrets.len()]);
        let redacted = redactor.redact(&text).into_owned();
        prop_assert!(secrets.iter().all(|secret| !redacted.contains(secret.as_str())));
        prop_assert_eq!(redactor.redact(&redacted), redacted.as_str());
    }

    #[test]
    fn redaction_is_idempotent(
        text in r#"(bearer |Authorization: (Basic )?|https://|sk-|eyJ|[a-z0-9]{0,24}|[:@."'/ =-]){0,12}"#,
    ) {
        let redactor = Redactor::default();
        let once = redactor.redact(&text).into_owned();
        prop_assert_eq!(redactor.redact(&once), once.as_str());
    }
}

// LG1, F169: summaries are truncated before they are redacted.
#[test]
fn redacts_truncated_secrets() {
    let redactor = Redactor::new(["hunter2-secret", "two\nlines of it"]);
    let token = format!("ghp_{}", "a1".repeat(20));
    let whole = serde_json::json!({
        "cmd": ["echo hunter2-secret x", "echo two\nlines of it", format!("echo {token}")],
    });
    for (text, expected) in [
        ("echo hunter2-s…", "echo [redacted]…"),
        ("a hunter2-secre…, b hunt…", "a [redacted]…, b [redacted]…"),
        ("echo hunter2-secret…", "echo [redacted]…"),
        ("echo two …", "echo two …"),
        ("echo ghp_a1a1…", "echo [redacted]…"),
        ("echo hun…", "echo hun…"),
        ("echo hunter2", "echo hunter2"),
        ("…", "…"),
    ] {
        let mut text = text.to_owned();
        let mut spotted = DetectedSecrets::default();
        spotted.scan_value(&redactor, &whole);
        redactor.redact_call_text(&mut text, &spotted);
        assert_eq!(text, expected);
    }
}

// LG1: fragments in outputs and errors are found by known values only.
#[test]
fn redacts_ends_of_known_secrets_at_truncations() {
    let redactor = Redactor::new(["Zx9q8w7e6r5t4y3u2i1o0p", "tab\tand\u{202e}mark"]);
    for (text, expected) in [
        ("a Zx9q8w7e6... b", "a [redacted]... b"),
        ("a Zx9q8w7e6\nb", "a [redacted]\nb"),
        ("a\n4y3u2i1o0p b", "a\n[redacted] b"),
        ("a …4y3u2i1o0p", "a …[redacted]"),
        ("a Zx9q8w7e6 b", "a Zx9q8w7e6 b"),
        (r"a tab\tand\u{202e}mark b", "a [redacted] b"),
        ("a ghp_a1B2c3D4e5… b", "a [redacted]… b"),
        ("Bearer a1B2c3... b", "Bearer [redacted]... b"),
        ("a ghp_a1B2c3D4e5 b", "a ghp_a1B2c3D4e5 b"),
        ("a task-loading… b", "a task-loading… b"),
        ("a tab\\tand\u{202e}mark b", "a [redacted] b"),
    ] {
        let mut text = text.to_owned();
        redactor.redact_call_text(&mut text, &DetectedSecrets::default());
        assert_eq!(text, expected);
    }
}

// LG1: a line of a secret that is found by itself does not keep the others from being found.
#[test]
fn redacts_the_start_of_a_known_secret_up_to_the_truncation() {
    let redactor = Redactor::new(["the first line\n of it \nthe last line", "wxyz123 5678abcd"]);
    for (text, expected) in [
        (r"a the first line\n of it \nthe last… b", "a [redacted]… b"),
        ("a the first line of it the l… b", "a [redacted]… b"),
        ("a the first line\n of it \nthe last", "a [redacted]"),
        // The space before the mark is one of the secret.
        ("a wxyz123 … b", "a [redacted]… b"),
        ("a wxyz123  … b", "a wxyz123  … b"),
    ] {
        let mut text = text.to_owned();
        redactor.redact_call_text(&mut text, &DetectedSecrets::default());
        assert_eq!(text, expected);
    }
}

#[test]
fn holds_back_a_possible_start_of_a_secret() {
    let redactor = Redactor::new(["abcdefgh12abcdefgh", "größe-geheim"]);
    for (text, settled) in [
        ("plain", 5),
        ("x abcdefg", 2),
        ("x abcdefgh12abcdefg", 2),
        // It may be the start of another secret.
        ("x abcdefgh12abcdefgh", 2),
        ("x grö", 2),
        ("x größe-geheim", 16),
        ("xa", 1),
        ("", 0),
    ] {
        assert_eq!(redactor.stable_prefix_len(text), settled, "{text}");
    }
    assert_eq!(Redactor::default().stable_prefix_len("abcdefg"), 7);
}
