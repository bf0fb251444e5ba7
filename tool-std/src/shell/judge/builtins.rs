//! What bash does itself, as data.

/// Builtins that no program stands for.
pub(super) const BUILTINS: &str = "\
    . : alias bg bind break builtin caller cd command compgen complete compopt continue declare \
    dirs disown enable eval exec exit export fc fg getopts hash help history jobs let local logout \
    mapfile popd pushd read readarray readonly return set shift shopt source suspend times trap \
    type typeset ulimit umask unalias unset wait";
