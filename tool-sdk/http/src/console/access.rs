//! Who may use the console: one-time codes, and the browsers that signed in with one.
//!
//! A code is in the link that the program prints. The page exchanges it for a cookie that scripts
//! cannot read, and for a request token that the page sends with every request. Browsers send the
//! cookie to all ports of a host; the token is in the storage of the page's origin, which no other
//! port can read.
//!
//! **Invariant:** a code counts once; a cookie counts only together with its request token, and no
//! response to the cookie alone has the token.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use axum::http::HeaderMap;
use axum::http::header::{COOKIE, HOST, HeaderName};

use crate::Token;
use crate::token::TokenDigest;

/// The header that carries the request token.
pub(crate) const CONSOLE_REQUEST: HeaderName = HeaderName::from_static("console-request");
/// The header in which browsers say which site a request comes from.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// How many codes are valid at once; the oldest one ends for another one.
const MAX_CODES: usize = 8;
/// How many browsers are signed in at once; the one that was idle for longest is signed out for
/// another one.
const MAX_BROWSERS: usize = 16;
/// How long after its last event stream a page may still come back: it is loaded again, or connects
/// again after an interruption.
const ABSENCE_LIMIT: Duration = Duration::from_mins(1);

/// Who may use the console of a server. A host makes one, passes it to
/// [`RestOptions::with_console`](crate::rest::RestOptions::with_console), and gives the link to the
/// person who uses the console.
///
/// A browser that opened the link has all scopes of the server's owner: it calls tools, approves
/// calls and changes grants. What it approves is recorded as approved by `console`, or by the person
/// that the link was made for. Clones share codes and browsers.
///
/// # Examples
///
/// ```
/// use tool_sdk::http::{ConsoleAccess, HttpOptions, RestOptions, Token};
///
/// let console = ConsoleAccess::default();
/// let options = RestOptions::new(HttpOptions::new(Token::random()?)).with_console(console.clone());
/// // Once the server listens:
/// let link = console.create_link("http://127.0.0.1:8080")?;
/// assert!(link.starts_with("http://127.0.0.1:8080/#"));
/// # let _ = options;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct ConsoleAccess(Arc<Mutex<SignedInBrowsers>>);

#[derive(Default)]
struct SignedInBrowsers {
    codes: Vec<OneTimeCode>,
    browsers: Vec<SignedInBrowser>,
}

struct OneTimeCode {
    digest: TokenDigest,
    created: Instant,
    user: ConsoleUser,
}

struct SignedInBrowser {
    user: ConsoleUser,
    cookie: TokenDigest,
    request_token: TokenDigest,
    last_used: Instant,
    streams: Arc<Mutex<BrowserStreams>>,
}

/// Who uses a browser: the person that its link was made for, if the link was made for one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ConsoleUser(Option<Arc<str>>);

impl ConsoleUser {
    pub(crate) fn new(name: Option<&str>) -> Self {
        Self(name.map(Arc::from))
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// The event streams of a browser. A page has one open while it is shown.
struct BrowserStreams {
    open: usize,
    /// When the browser signed in, or a stream of it ended.
    last_seen: Instant,
}

/// An open event stream of a browser. Dropping it counts it as ended.
pub(crate) struct BrowserStreamGuard(Arc<Mutex<BrowserStreams>>);

/// What a browser gets that signs in.
pub(crate) struct BrowserCredentials {
    /// The value of the cookie.
    pub(crate) cookie: Token,
    /// What the page sends with each request.
    pub(crate) request_token: Token,
    pub(crate) user: ConsoleUser,
}

impl ConsoleAccess {
    /// How long a link can be opened.
    pub const LINK_LIFETIME: Duration = Duration::from_mins(10);
    /// How long a browser stays signed in without a request.
    pub const IDLE_LIMIT: Duration = Duration::from_hours(12);

    /// Returns a link that signs one browser in, once, within [`LINK_LIFETIME`](Self::LINK_LIFETIME).
    /// `base` is the address of the server, such as `http://127.0.0.1:8080`.
    ///
    /// The code is behind `#`, so browsers send it in no request line and no `Referer`.
    ///
    /// # Errors
    ///
    /// Fails when the system has no random numbers.
    pub fn create_link(&self, base: &str) -> io::Result<String> {
        self.add_code(base, ConsoleUser::default())
    }

    /// Returns a link as [`create_link`](Self::create_link) does, for the person `user`: the audit log
    /// names the person for what is approved in the browser.
    ///
    /// # Errors
    ///
    /// Fails when the system has no random numbers.
    pub fn create_link_for(&self, base: &str, user: &str) -> io::Result<String> {
        self.add_code(base, ConsoleUser::new(Some(user)))
    }

    fn add_code(&self, base: &str, user: ConsoleUser) -> io::Result<String> {
        let code = Token::random()?;
        let mut state = self.lock();
        state.codes.retain(OneTimeCode::is_valid);
        if state.codes.len() >= MAX_CODES {
            state.codes.remove(0);
        }
        let digest = TokenDigest::new(code.reveal());
        state.codes.push(OneTimeCode { digest, created: Instant::now(), user });
        Ok(format!("{}/#{}", base.trim_end_matches('/'), code.reveal()))
    }

    /// Whether a page of the console is open, or was within the last minute: a call that needs an
    /// approval waits only for a user who sees the request.
    pub(crate) fn has_open_page(&self) -> bool {
        let (state, now) = (self.lock(), Instant::now());
        state.browsers.iter().any(|it| it.is_valid() && it.has_open_page(now))
    }

    /// Counts an event stream of the browser that the request comes from, until the guard is
    /// dropped.
    pub(crate) fn count_stream(&self, headers: &HeaderMap) -> Option<BrowserStreamGuard> {
        let streams = Arc::clone(&self.lock().find_browser(headers)?.streams);
        lock_streams(&streams).open += 1;
        Some(BrowserStreamGuard(streams))
    }

    /// Returns the user of the signed-in browser whose page sends the request.
    pub(crate) fn find_user(&self, headers: &HeaderMap) -> Option<ConsoleUser> {
        let mut state = self.lock();
        let browser = state.find_browser(headers)?;
        browser.last_used = Instant::now();
        Some(browser.user.clone())
    }

    /// Signs a browser in; `None` for a code that is unknown, used or too old.
    pub(crate) fn redeem_code(&self, code: &str) -> Option<io::Result<BrowserCredentials>> {
        let mut state = self.lock();
        state.codes.retain(OneTimeCode::is_valid);
        let digest = TokenDigest::new(code);
        let found = state.codes.iter().position(|it| it.digest.matches(&digest))?;
        let user = state.codes.remove(found).user;
        Some(state.add_browser(user))
    }

    /// Signs the browser of the request out.
    pub(crate) fn sign_out(&self, headers: &HeaderMap) {
        let cookies = cookie_digests(headers);
        self.lock().browsers.retain(|browser| !browser.has_cookie(&cookies));
    }

    /// A poisoned lock still guards whole entries: no operation panics half-way.
    fn lock(&self) -> MutexGuard<'_, SignedInBrowsers> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SignedInBrowsers {
    fn add_browser(&mut self, user: ConsoleUser) -> io::Result<BrowserCredentials> {
        let (cookie, request_token) = (Token::random()?, Token::random()?);
        let credentials = BrowserCredentials { cookie, request_token, user: user.clone() };
        self.browsers.retain(SignedInBrowser::is_valid);
        if self.browsers.len() >= MAX_BROWSERS {
            self.browsers.sort_by_key(|it| it.last_used);
            self.browsers.remove(0);
        }
        self.browsers.push(SignedInBrowser {
            user,
            cookie: TokenDigest::new(credentials.cookie.reveal()),
            request_token: TokenDigest::new(credentials.request_token.reveal()),
            last_used: Instant::now(),
            streams: Arc::new(Mutex::new(BrowserStreams { open: 0, last_seen: Instant::now() })),
        });
        Ok(credentials)
    }

    /// Returns the signed-in browser whose cookie and request token the request has.
    fn find_browser(&mut self, headers: &HeaderMap) -> Option<&mut SignedInBrowser> {
        // Browsers that send the header say with it that a script of another site asks.
        let site = headers.get(&SEC_FETCH_SITE);
        if site.is_some_and(|site| site != "same-origin") {
            return None;
        }
        let token = TokenDigest::new(headers.get(&CONSOLE_REQUEST)?.to_str().ok()?);
        let cookies = cookie_digests(headers);
        let mut valid = self.browsers.iter_mut().filter(|it| it.is_valid());
        valid.find(|it| it.has_cookie(&cookies) && it.request_token.matches(&token))
    }
}

impl OneTimeCode {
    fn is_valid(&self) -> bool {
        self.created.elapsed() < ConsoleAccess::LINK_LIFETIME
    }
}

impl SignedInBrowser {
    fn is_valid(&self) -> bool {
        self.last_used.elapsed() < ConsoleAccess::IDLE_LIMIT
    }

    fn has_open_page(&self, now: Instant) -> bool {
        let streams = lock_streams(&self.streams);
        streams.open > 0 || now.saturating_duration_since(streams.last_seen) < ABSENCE_LIMIT
    }

    fn has_cookie(&self, cookies: &[TokenDigest]) -> bool {
        cookies.iter().any(|it| self.cookie.matches(it))
    }
}

impl Drop for BrowserStreamGuard {
    fn drop(&mut self) {
        let mut streams = lock_streams(&self.0);
        streams.open = streams.open.saturating_sub(1);
        streams.last_seen = Instant::now();
    }
}

fn lock_streams(streams: &Mutex<BrowserStreams>) -> MutexGuard<'_, BrowserStreams> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the name of the cookie. Browsers send cookies to all ports of a host, so the name has the
/// port: servers do not overwrite the cookies of each other.
pub(crate) fn cookie_name(headers: &HeaderMap) -> String {
    let host = headers.get(HOST).and_then(|it| it.to_str().ok()).unwrap_or_default();
    let port = host.rsplit_once(':').map_or("", |(_, port)| port);
    let is_number = !port.is_empty() && port.bytes().all(|it| it.is_ascii_digit());
    format!("tool-console-{}", if is_number { port } else { "0" })
}

/// Returns the digests of the values of the console's cookie.
fn cookie_digests(headers: &HeaderMap) -> Vec<TokenDigest> {
    let name = cookie_name(headers);
    let lines = headers.get_all(COOKIE).iter().filter_map(|it| it.to_str().ok());
    let pairs = lines.flat_map(|line| line.split(';')).filter_map(|it| it.trim().split_once('='));
    pairs.filter(|(key, _)| *key == name).map(|(_, value)| TokenDigest::new(value)).collect()
}

/// Shows no code and no token.
impl fmt::Debug for ConsoleAccess {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConsoleAccess").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(cookie: &str, token: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.append(HOST, "127.0.0.1:8080".parse().unwrap());
        headers.append(COOKIE, cookie.parse().unwrap());
        headers.append(CONSOLE_REQUEST, token.parse().unwrap());
        headers
    }

    fn code_of(access: &ConsoleAccess) -> String {
        access.create_link("http://h/").unwrap().split_once('#').unwrap().1.to_owned()
    }

    #[test]
    fn a_code_counts_once() {
        let access = ConsoleAccess::default();
        let code = code_of(&access);
        assert!(access.redeem_code("other").is_none() && !access.has_open_page());
        assert!(access.redeem_code(&code).is_some() && access.has_open_page());
        assert!(access.redeem_code(&code).is_none());
        // A browser is that of the person whom its link is for.
        let link = access.create_link_for("http://h/", "ada").unwrap();
        let ada = access.redeem_code(link.split_once('#').unwrap().1).unwrap().unwrap();
        let cookie = format!("tool-console-8080={}", ada.cookie.reveal());
        let user = access.find_user(&headers(&cookie, ada.request_token.reveal()));
        assert_eq!(user.unwrap().name(), Some("ada"));
        // The oldest of too many codes ends.
        let first = code_of(&access);
        (0..MAX_CODES).for_each(|_| drop(code_of(&access)));
        assert!(access.redeem_code(&first).is_none());
    }

    #[test]
    fn a_browser_without_a_stream_has_no_page_after_a_minute() {
        let access = ConsoleAccess::default();
        let ada = access.redeem_code(&code_of(&access)).unwrap().unwrap();
        let cookie = format!("tool-console-8080={}", ada.cookie.reveal());
        let headers = headers(&cookie, ada.request_token.reveal());
        let has_page_after = |seconds: u64| {
            let then = Instant::now() + Duration::from_secs(seconds);
            access.lock().browsers.iter().any(|it| it.has_open_page(then))
        };
        // The page has a minute for its first stream.
        assert!(has_page_after(30) && !has_page_after(61));
        let streams = [(); 2].map(|()| access.count_stream(&headers).unwrap());
        assert!(has_page_after(61));
        let [first, second] = streams;
        drop(first);
        assert!(has_page_after(61));
        drop(second);
        assert!(has_page_after(30) && !has_page_after(61));
        // A browser that signed out has none.
        let _stream = access.count_stream(&headers).unwrap();
        access.sign_out(&headers);
        assert!(!access.has_open_page() && access.count_stream(&headers).is_none());
    }

    #[test]
    fn a_cookie_counts_with_its_request_token_only() {
        let access = ConsoleAccess::default();
        let sign_in = || access.redeem_code(&code_of(&access)).unwrap().unwrap();
        let (ada, bob) = (sign_in(), sign_in());
        let cookie =
            |it: &BrowserCredentials| format!("a=b; tool-console-8080={}", it.cookie.reveal());
        let token = |it: &BrowserCredentials| it.request_token.reveal().to_owned();
        assert!(access.find_user(&headers(&cookie(&ada), &token(&ada))).is_some());
        assert!(access.find_user(&headers(&cookie(&ada), &token(&bob))).is_none());
        assert!(access.find_user(&headers("tool-console-8080=x", &token(&ada))).is_none());
        // A cookie of a server at another port.
        let other = cookie(&ada).replace("8080", "8081");
        assert!(access.find_user(&headers(&other, &token(&ada))).is_none());
        let mut foreign = headers(&cookie(&ada), &token(&ada));
        foreign.append(SEC_FETCH_SITE, "same-site".parse().unwrap());
        assert!(access.find_user(&foreign).is_none());

        access.sign_out(&headers(&cookie(&ada), ""));
        assert!(access.find_user(&headers(&cookie(&ada), &token(&ada))).is_none());
        assert!(access.find_user(&headers(&cookie(&bob), &token(&bob))).is_some());
    }
}
