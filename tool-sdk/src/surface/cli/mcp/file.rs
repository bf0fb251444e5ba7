//! The configuration file, changed where a server comes or goes, and nowhere else.

use std::fs;
use std::io;
use std::path::Path;

/// Adds a block at the end of the file, which is made where it is missing.
pub(super) fn add(path: &Path, block: &str) -> io::Result<()> {
    let mut text = read(path)?;
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(block);
    // What cannot be read afterwards is not written.
    if let Err(error) = toml::from_str::<toml::Table>(&text) {
        let words = format!("it would not be readable any more: {}", error.message());
        return Err(io::Error::new(io::ErrorKind::InvalidData, words));
    }
    replace(path, &text)
}

/// Takes the block of a server away; says whether there was one.
pub(super) fn remove(path: &Path, server: &str) -> io::Result<bool> {
    let text = read(path)?;
    let rest = without(&text, server);
    let found = rest.len() != text.len();
    if found {
        replace(path, &rest)?;
    }
    Ok(found)
}

/// The text without the tables of a server.
fn without(text: &str, server: &str) -> String {
    let table = format!("mcp.servers.{server}");
    let mut inside = false;
    let mut rest = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let header = line.trim().strip_prefix('[').and_then(|line| line.split(']').next());
        if let Some(header) = header {
            let below = header.strip_prefix(&table);
            inside = below.is_some_and(|below| below.is_empty() || below.starts_with('.'));
        }
        if !inside {
            rest.push_str(line);
        }
    }
    rest
}

fn read(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read,
    }
}

/// The new file takes the place of the old one in one step, and keeps who may read it.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    // A link stays a link.
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let unfinished = path.with_extension(format!("{:016x}.tmp", getrandom::u64()?));
    let write = || {
        fs::write(&unfinished, text)?;
        if let Ok(metadata) = fs::metadata(&path) {
            fs::set_permissions(&unfinished, metadata.permissions())?;
        }
        fs::rename(&unfinished, &path)
    };
    write().inspect_err(|_| drop(fs::remove_file(&unfinished)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_block_of_the_server_goes() {
        let text = "mode = \"auto\"\n\n[mcp.servers.a]\ncommand = \"x\"\n\
                    [mcp.servers.a.env]\nK = \"v\"\n[mcp.servers.ab]\ncommand = \"y\"\n";
        let rest = "mode = \"auto\"\n\n[mcp.servers.ab]\ncommand = \"y\"\n";
        assert_eq!(without(text, "a"), rest);
        assert_eq!(without(rest, "a"), rest);
    }

    #[test]
    fn a_block_comes_to_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/config.toml");
        add(&path, "[mcp.servers.a]\n").unwrap();
        add(&path, "[mcp.servers.b]\n").unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text, "[mcp.servers.a]\n\n[mcp.servers.b]\n");
        assert!(remove(&path, "a").unwrap() && !remove(&path, "a").unwrap());
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
