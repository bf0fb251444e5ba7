//! Synonyms of programs and subcommands: `cargo r` is `cargo run`, `npm publ` is `npm publish`,
//! `git-push` is `git push`.
//!
//! **Invariant:** synonyms are for deny rules only. A rule that allows one name does not allow
//! another.

use super::program_names::canonical_name;
use super::word::{bare_name, list_contains};

/// Subcommands and their synonyms, separated by `|`; the first is the canonical one.
const SYNONYMS: &[(&[&str], &[&str])] = &[
    (&["brew"], &["install|instal", "list|ls", "uninstall|remove|rm", "update|up"]),
    (&["bun"], &["add|a", "create|c", "install|i", "remove|rm"]),
    (&["cargo"], &["build|b", "check|c", "doc|d", "remove|rm", "run|r", "test|t"]),
    (
        &["composer"],
        &["install|i", "remove|rm|uninstall", "require|r", "run|run-script", "update|u|upgrade"],
    ),
    (&["deno"], &["install|i", "remove|rm"]),
    (&["dnf"], &["install|in|localinstall", "remove|erase|rm", "upgrade|update|up"]),
    (
        &["docker", "podman"],
        &[
            "build|builder build|buildx build|buildx b",
            "container ls|ps|container list|container ps",
            "container rm|container remove",
            "image ls|images|image list",
            "image rm|rmi|image remove",
            "images|image ls|image list",
            "network rm|network remove",
            "ps|container ls|container list|container ps",
            "rm|container remove",
            "rmi|image rm|image remove",
            "volume rm|volume remove",
        ],
    ),
    (
        &["gh"],
        &[
            "issue create|issue new",
            "pr create|pr new",
            "release create|release new",
            "repo create|repo new",
        ],
    ),
    (
        &["git"],
        &[
            "add|stage",
            "blame|annotate",
            "fsck|fsck-objects",
            "init|init-db",
            "remote remove|remote rm",
        ],
    ),
    (&["helm"], &["list|ls", "pull|fetch", "uninstall|del|delete|un"]),
    (&["hg"], &["commit|ci", "remove|rm", "update|checkout|co|up"]),
    (
        &["ip"],
        &[
            "address|a|ad|add|addr",
            "link|l|li|lin",
            "monitor|m|mo",
            "neighbour|n|ne|nei|neig|neigh|neighbor",
            "route|r|ro",
            "rule|ru",
        ],
    ),
    (
        &["npm"],
        &[
            "ci|clean-install|ic|install-clean|isntall-clean",
            "config|c",
            "dist-tag|dist-tags",
            "exec|x",
            "init|create|innit",
            "install|add|i|in|ins|insta|instal|inst|isnt|isnta|isntal|isntall",
            "install-ci-test|cit|clean-install-test|sit",
            "install-test|it",
            "link|ln",
            "owner|author",
            "run|run-script|rum|urn",
            "search|find|s|se",
            "test|t|tst",
            "uninstall|r|remove|rm|un|unlink",
            "update|udpate|up|upgrade",
            "version|verison",
            "view|info|show|v",
        ],
    ),
    (
        &["pnpm"],
        &[
            "config|c",
            "install|i",
            "link|ln",
            "remove|rm|un|uninstall",
            "run|run-script",
            "test|t|tst",
            "update|up|upgrade",
        ],
    ),
    (&["rustup"], &["update|up|upgrade"]),
];

/// Groups of subcommands whose group name may be omitted.
const GROUPS: &[(&[&str], &str, &[&str])] = &[
    (
        &["docker", "podman"],
        "container ",
        &[
            "attach", "commit", "cp", "create", "diff", "exec", "export", "kill", "logs", "pause",
            "port", "rename", "restart", "rm", "run", "start", "stats", "stop", "top", "unpause",
            "update", "wait",
        ],
    ),
    (
        &["docker", "podman"],
        "image ",
        &["build", "history", "import", "load", "pull", "push", "save", "tag"],
    ),
];

/// Subcommands of programs that accept unambiguous abbreviations.
const ABBREVIATED_COMMANDS: &[(&str, &str)] = &[
    (
        "composer",
        "archive audit browse bump clear-cache config create-project depends diagnose \
         dump-autoload exec fund global init licenses list outdated prohibits reinstall remove \
         repository require run search self-update show status suggests update validate",
    ),
    (
        "gem",
        "build cert check cleanup contents dependency environment exec fetch generate_index help \
         info install list lock mirror open outdated owner pristine push query rdoc rebuild search \
         server signin signout sources specification stale uninstall unpack update which yank",
    ),
    (
        "hg",
        "add addremove annotate archive backout bisect blame bookmarks branch branches bundle cat \
         clone commit config copy diff export files forget graft grep heads help histedit identify \
         import incoming init locate log manifest merge outgoing parents paths phase pull push \
         rebase recover remove rename resolve revert rollback root serve shelve status strip \
         summary tag tags tip transplant unbundle unshelve update verify version",
    ),
    (
        "ip",
        "address addrlabel fou ila ioam l2tp link macsec maddress monitor mptcp mroute mrule \
         neighbour netconf netns nexthop ntable route rule sr stats tcpmetrics token tunnel tuntap \
         vrf xfrm",
    ),
    (
        "npm",
        "access adduser audit bugs cache ci completion config dedupe deprecate diff dist-tag docs \
         doctor edit exec explain explore find-dupes fund get help help-search hook init install \
         install-ci-test install-test link ll login logout ls org outdated owner pack ping pkg \
         prefix profile prune publish query rebuild repo restart root run sbom search set \
         shrinkwrap star stars start stop team test token undeprecate uninstall unpublish unstar \
         update version view whoami",
    ),
];

/// Programs that are equivalent to the usual one.
const EQUIVALENT_PROGRAMS: &[(&str, &str)] = &[
    ("bsdtar gtar", "tar"),
    ("docker-compose", "docker compose"),
    ("egrep fgrep ggrep", "grep"),
    ("gawk mawk nawk original-awk", "awk"),
    ("gfind", "find"),
    ("gmake", "make"),
    ("gsed", "sed"),
    ("nodejs", "node"),
    ("podman-compose", "podman compose"),
];

/// Returns the synonyms of a subcommand, which may have two words.
pub(super) fn command_synonyms(program: &str, command: &str) -> Vec<String> {
    let same = SYNONYMS.iter().filter(|(programs, _)| programs.contains(&program));
    let mut found: Vec<String> = same
        .flat_map(|(_, names)| *names)
        .filter_map(|names| names.split_once('|'))
        .filter(|(_, others)| others.split('|').any(|other| other == command))
        .map(|(first, _)| first.to_owned())
        .collect();
    for (_, group, names) in GROUPS.iter().filter(|(programs, ..)| programs.contains(&program)) {
        match command.strip_prefix(group) {
            Some(name) if names.contains(&name) => found.push(name.to_owned()),
            None if names.contains(&command) => found.push(format!("{group}{command}")),
            _ => {}
        }
    }
    if found.is_empty() && !command.is_empty() {
        let lists = ABBREVIATED_COMMANDS
            .iter()
            .filter(|(name, list)| *name == program && !list_contains(list, command));
        let names = lists.flat_map(|(_, list)| list.split(' '));
        found.extend(names.filter(|name| name.starts_with(command)).map(str::to_owned));
    }
    found
}

/// Returns the synonyms of a program; one of them may be a program with a subcommand.
pub(super) fn program_synonyms(program: &str) -> Vec<String> {
    let name = bare_name(program);
    let known = canonical_name(program);
    let mut found: Vec<String> = version_prefixes(&name, &known).map(str::to_owned).collect();
    if known != name {
        found.push(known.to_string());
    }
    if let Some(command) = name.strip_prefix("git-").filter(|command| !command.is_empty()) {
        found.push(format!("git {command}"));
    }
    let kinds = EQUIVALENT_PROGRAMS.iter().filter(|(names, _)| list_contains(names, &name));
    found.extend(kinds.map(|(_, kind)| (*kind).to_owned()));
    found
}

/// Returns the names with a shortened version: `python3` for `python3.11`.
fn version_prefixes<'n>(name: &'n str, known: &'n str) -> impl Iterator<Item = &'n str> {
    let dots = name.rmatch_indices(['.', '-']).map(|(at, _)| &name[..at]);
    let is_version =
        |rest: &str| rest.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | '-'));
    dots.filter(move |it| {
        it.strip_prefix(known).is_some_and(|rest| !rest.is_empty() && is_version(rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_means_another_is_that_too() {
        for (program, command, expected) in [
            ("cargo", "r", &["run"][..]),
            ("cargo", "run", &[]),
            ("git", "stage", &["add"]),
            ("git", "init-db", &["init"]),
            ("npm", "publ", &["publish"]),
            ("npm", "i", &["install"]),
            ("npm", "rum", &["run"]),
            ("npm", "install", &[]),
            ("npm", "unp", &["unpublish"]),
            ("npm", "", &[]),
            ("docker", "container rm", &["rm"]),
            ("docker", "rm", &["container rm"]),
            ("docker", "image rm", &["rmi"]),
            ("docker", "image prune", &[]),
            ("ip", "l", &["link"]),
            ("ip", "netn", &["netns"]),
            ("hg", "pus", &["push"]),
            ("make", "r", &[]),
        ] {
            assert_eq!(command_synonyms(program, command), expected, "{program} {command}");
        }
    }

    #[test]
    fn a_program_is_known_without_its_version_too() {
        for (program, expected) in [
            ("python3.11", &["python3", "python"][..]),
            ("/usr/bin/python3", &["python"]),
            ("pip3", &["pip"]),
            ("gcc-12", &["gcc"]),
            ("mawk", &["awk"]),
            ("/usr/lib/git-core/git-push", &["git push"]),
            ("docker-compose", &["docker compose"]),
            ("python", &[]),
            ("base64", &[]),
            ("apt-get", &[]),
        ] {
            assert_eq!(program_synonyms(program), expected, "{program}");
        }
    }

    // Otherwise a rule about what is meant would not be held against it.
    #[test]
    fn names_that_are_listed_are_names() {
        for (programs, names) in SYNONYMS {
            for names in *names {
                assert!(
                    names.split('|').all(|name| !name.trim().is_empty()),
                    "{programs:?} {names}"
                );
            }
        }
        for (program, list) in ABBREVIATED_COMMANDS {
            assert!(list.split(' ').all(|name| !name.is_empty()), "{program}");
        }
    }
}
