//! Programs whose arguments can run other programs or write files, as data.
//!
//! Long options are dangerous unless they are listed as harmless, which also covers unknown
//! options and abbreviations. Short options are few and often come in clusters, so the dangerous
//! ones are listed.

/// The options of one program.
#[derive(Debug)]
pub(super) struct OptionProfile {
    pub(super) names: &'static [&'static str],
    /// Dangerous short options, also in a cluster.
    pub(super) letters: &'static str,
    /// Harmless long options, without dashes, separated by spaces.
    pub(super) harmless: &'static str,
    /// Whether long options have a single dash, so that short options cannot be clustered.
    pub(super) single_dash: bool,
}

/// The profiles. Some programs have further checks in `dangerous`.
pub(super) const PROFILES: &[OptionProfile] = &[
    OptionProfile {
        names: &["awk", "gawk", "mawk", "nawk", "original-awk"],
        letters: "fiEelWodpD",
        harmless: "\
            assign field-separator posix traditional version",
        single_dash: false,
    },
    OptionProfile {
        names: &["cargo"],
        letters: "ZC",
        harmless: "\
            all all-features all-targets allow-dirty bench benches bin bins charset check color \
            depth dev doc document-private-items dry-run duplicates edges edition example \
            examples exclude features fix format format-version frozen git help ignore-rust-version invert jobs \
            keep-going lib list locked message-format name no-default-features no-deps \
            no-fail-fast no-run offline open package precise prefix profile quiet recursive \
            release target test tests timings vcs verbose version workspace",
        single_dash: false,
    },
    OptionProfile {
        names: &["curl"],
        letters: "oOKTDbcnxEdFUw",
        harmless: "\
            compressed connect-timeout fail fail-with-body get globoff head header help http1.1 \
            http2 include ipv4 ipv6 location max-redirs max-time no-progress-meter progress-bar \
            proto referer request retry retry-delay show-error silent tlsv1.2 user-agent verbose \
            version",
        single_dash: false,
    },
    OptionProfile {
        names: &["fd", "fdfind"],
        letters: "xX",
        harmless: "\
            absolute-path case-sensitive changed-before changed-within color exclude extension \
            fixed-strings follow full-path glob help hidden ignore-case list-details max-depth \
            max-results min-depth no-ignore print0 quiet size type unrestricted version",
        single_dash: false,
    },
    OptionProfile {
        names: &["find", "gfind", "bfs"],
        letters: "f",
        harmless: "\
            E H L O1 O2 O3 P X a amin and anewer atime cmin cnewer ctime d daystart depth empty \
            executable false fstype gid group help ilname iname inum ipath iregex iwholename \
            links lname ls maxdepth mindepth mmin mount mtime name newer newerBt neweraa newerac \
            newerat newerca newercc newercm newerct newerma newermc newermm newermt nogroup \
            noleaf not nouser nowarn o or path perm print print0 printf prune quit readable \
            regex regextype s samefile size true type uid used user version warn wholename \
            writable x xdev xtype",
        single_dash: true,
    },
    OptionProfile {
        names: &["git"],
        letters: "",
        harmless: "\
            abbrev abbrev-commit abbrev-ref abort absolute-git-dir after all allow-empty \
            allow-empty-message always amend ancestry-path and annotate atomic author author-date-order \
            autosquash autostash bare before binary branch branches break cached cc check cherry \
            cherry-mark cherry-pick color color-words column committer compact-summary contains \
            continue copy count create date date-order decorate delete deleted depth detach diff-algorithm discard-changes \
            diff-filter dirstat dirty dry-run edit error-unmatch exact-match exclude-standard \
            exit-code ff ff-only follow-tags find-copies find-renames first-parent fixup follow force \
            force-with-lease format full-history full-index full-name function-context get \
            get-all get-regexp git-dir global graph grep hard heading heads help histogram ignore-all-space ignore-blank-lines \
            ignore-case ignore-cr-at-eol ignore-space-change ignore-submodules ignored index \
            include-untracked indent-heuristic intent-to-add inter-hunk-context interactive \
            invert-grep is-ancestor is-inside-work-tree jobs keep keep-base keep-index left-right list local long match \
            max-count merge merge-base merged merges message minimal mirror mixed modified move \
            name-only name-rev name-status no-abbrev no-color no-commit no-commit-id no-decorate no-edit \
            no-ext-diff no-ff no-find-renames no-gpg-sign no-index no-keep-index no-merged \
            no-merges no-pager no-patch no-prefix no-rebase no-renames no-single-branch no-stat \
            no-tags no-textconv no-track no-verify no-walk not numbered numstat oneline or only onto orphan \
            others ours patch patch-with-stat patience pickaxe-regex \
            points-at porcelain pretty prune push quiet quit raw rebase recurse-submodules \
            rebase-merges reflog regexp-ignore-case relative relative-date remotes renormalize reset-author reuse-message \
            reverse root set-upstream set-upstream-to shallow-since short shortstat show-current \
            show-origin show-prefix show-scope show-stash show-toplevel signoff simplify-by-decoration \
            since single-branch skip soft sort source squash stage staged stat stat-width \
            submodule summary symbolic-full-name system tags text theirs topo-order track trailer \
            unified unmerged unset-upstream unshallow until untracked untracked-files update verbose verify version \
            walk-reflogs word-diff worktree",
        single_dash: false,
    },
    OptionProfile {
        names: &["go"],
        letters: "C",
        harmless: "\
            a all asan bench benchmem benchtime buildvcs count cover covermode coverpkg cpu d \
            deps e f failfast find fmt help json list m mod msan n p parallel race run short \
            shuffle skip t tags test timeout trimpath u v versions vet work x",
        single_dash: true,
    },
    OptionProfile {
        names: &["less", "more", "most", "pager", "sensible-pager"],
        letters: "koOT",
        harmless: "chop-long-lines help ignore-case line-numbers quit-if-one-screen version",
        single_dash: false,
    },
    OptionProfile {
        names: &["man"],
        letters: "CHPTXlpt",
        harmless: "all apropos help path version whatis where",
        single_dash: false,
    },
    OptionProfile {
        names: &[
            "vim",
            "editor",
            "ex",
            "gview",
            "gvim",
            "nvim",
            "rview",
            "rvim",
            "sensible-editor",
            "vi",
            "view",
            "vimdiff",
            "emacs",
            "ed",
        ],
        letters: "SUVWcfilsuwx",
        harmless: "help version",
        single_dash: false,
    },
    OptionProfile {
        names: &["gdb", "gdb-multiarch", "gdbtui", "lldb", "rust-gdb", "rust-gdbgui", "rust-lldb"],
        letters: "",
        harmless: "batch h help n nh nx p pid q quiet silent v version",
        single_dash: true,
    },
    OptionProfile {
        names: &["zip"],
        letters: "TblO",
        harmless: "\
            delete encrypt exclude freshen help include junk-paths move quiet recurse-paths \
            symlinks sync update verbose version",
        single_dash: false,
    },
    OptionProfile {
        names: &["make", "gmake"],
        letters: "fCIE",
        harmless: "\
            always-make debug dry-run help ignore-errors jobs just-print keep-going load-average \
            no-print-directory output-sync print-directory question quiet silent touch trace \
            version",
        single_dash: false,
    },
    OptionProfile {
        names: &["npm", "pnpm", "yarn", "npx"],
        letters: "cC",
        harmless: "\
            all audit depth dev dry-run filter force frozen-lockfile global help if-present \
            ignore-scripts immutable include json legacy-peer-deps long no-audit no-fund \
            no-package-lock no-save offline omit only parallel parseable prefer-offline \
            production recursive save save-dev save-exact silent stream verbose version \
            workspace workspaces yes",
        single_dash: false,
    },
    OptionProfile {
        names: &["rg", "rga"],
        letters: "z",
        harmless: "\
            after-context before-context case-sensitive color colors column context count \
            count-matches files files-with-matches files-without-match fixed-strings follow glob \
            glob-case-insensitive heading help hidden iglob ignore-case invert-match json \
            line-number line-regexp max-columns max-count max-depth max-filesize multiline \
            multiline-dotall no-config no-filename no-heading no-ignore no-ignore-vcs \
            no-line-number no-messages null only-matching passthru pcre2 pre-glob quiet regexp \
            replace smart-case sort sortr stats text trim type type-list type-not unrestricted \
            version vimgrep with-filename word-regexp",
        single_dash: false,
    },
    OptionProfile {
        names: &["rm"],
        letters: "",
        harmless: "\
            dir force help interactive one-file-system preserve-root recursive verbose version",
        single_dash: false,
    },
    OptionProfile {
        names: &["rsync"],
        letters: "eM",
        harmless: "\
            archive checksum compress delete dry-run exclude exclude-from existing group help \
            human-readable ignore-existing include itemize-changes links list-only owner partial \
            perms progress quiet recursive size-only stats times update verbose version",
        single_dash: false,
    },
    OptionProfile {
        names: &["sed", "gsed"],
        letters: "fiIl",
        harmless: "\
            debug expression help null-data posix quiet regexp-extended sandbox \
            separate silent unbuffered version zero-terminated",
        single_dash: false,
    },
    OptionProfile {
        names: &["sort", "gsort"],
        letters: "oT",
        harmless: "\
            check dictionary-order field-separator general-numeric-sort help human-numeric-sort \
            ignore-case ignore-leading-blanks key merge month-sort numeric-sort parallel \
            random-sort reverse sort stable unique version version-sort zero-terminated",
        single_dash: false,
    },
    OptionProfile {
        names: &["split", "gsplit"],
        letters: "",
        harmless: "\
            additional-suffix bytes elide-empty-files help hex-suffixes line-bytes lines number \
            numeric-suffixes separator suffix-length unbuffered verbose version",
        single_dash: false,
    },
    OptionProfile {
        names: &["scp", "sftp", "ssh"],
        letters: "oFESIJKLRDwWOPAXYb",
        harmless: "",
        single_dash: false,
    },
    OptionProfile {
        names: &["tar", "bsdtar", "gtar"],
        letters: "FIPCg",
        harmless: "\
            append auto-compress bzip2 concatenate create dereference diff exclude extract file \
            format get group gzip help keep-old-files list lzma mtime numeric-owner owner \
            preserve-permissions sort strip-components totals update verbose version wildcards \
            xz zstd",
        single_dash: false,
    },
    OptionProfile {
        names: &["wget"],
        letters: "OoaieP",
        harmless: "\
            help max-redirect no-verbose quiet server-response spider timeout tries user-agent \
            version wait",
        single_dash: false,
    },
];
