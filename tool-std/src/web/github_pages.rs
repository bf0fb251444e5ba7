//! Pages of GitHub that show a file: the file itself is shorter and complete.

use tool_sdk::net::Url;

/// Returns the URL of the file that a page `github.com/OWNER/REPOSITORY/blob/…` shows.
pub(super) fn raw_file_url(page: &Url) -> Option<Url> {
    if page.host_str() != Some("github.com") {
        return None;
    }
    let mut parts = page.path().splitn(5, '/').skip(1);
    let (owner, repository, kind, path) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_file = kind == "blob" && path.contains('/');
    let raw = format!("https://raw.githubusercontent.com/{owner}/{repository}/{path}");
    is_file.then(|| Url::parse(&raw).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    // F147: cases of another project, `tool-sdk/net/tests/fixtures/gemini-webfetch`.
    #[test]
    fn pages_of_files_become_the_files() {
        let cases = include_str!("../../../tool-sdk/net/tests/fixtures/gemini-webfetch/cases.json");
        let cases: serde_json::Value = serde_json::from_str(cases).unwrap();
        for case in cases["github_blob"].as_array().unwrap() {
            let Ok(page) = Url::parse(case["url"].as_str().unwrap()) else { continue };
            let raw = raw_file_url(&page).unwrap_or_else(|| page.clone());
            assert_eq!(raw.as_str(), case["raw"].as_str().unwrap(), "{page}");
        }
    }
}
