//! Stubs for the settings of tools on the web in a program without the feature `net`.

use clap::Arg;

use super::TomlValue;

const NO_CLIENT: &str = "this program is built without tools for the web";

/// The table `[web]` of the configuration file, which always is empty.
#[derive(Clone, Debug, Default)]
pub(super) struct FileWeb;

pub(super) fn parse_web(web: TomlValue<'_, '_>) -> FileWeb {
    web.report_error(NO_CLIENT);
    FileWeb
}

/// Returns no options.
pub(crate) fn web_options() -> impl Iterator<Item = Arg> {
    std::iter::empty()
}
