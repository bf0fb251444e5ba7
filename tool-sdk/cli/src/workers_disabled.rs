//! Stubs for remote workers in a program without the feature `remote`.

use super::settings::TomlValue;

const NO_WORKERS: &str = "this program is built without remote workers: the feature `remote` of \
                          `tool-sdk` adds them, as in `tool-sdk = { features = [\"cli\", \
                          \"remote\"] }`";

pub(super) type WorkerEntries = ();

pub(super) fn parse_workers(entries: Vec<(String, TomlValue<'_, '_>)>) -> WorkerEntries {
    entries.iter().for_each(|(_, entry)| entry.report_error(NO_WORKERS));
}
