//! The workers that a host knows, and which definition of each tool it offers.
//!
//! While workers are replaced by newer ones, several definitions of a tool are offered. The one that
//! is published stays for as long as a worker has it, so a tool does not change back and forth.
//!
//! **Invariant:** a definition is known by the hash of exactly its text.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use async_nats::service::{Info, endpoint};
use serde_json::Value;
use tool_sdk_core::Definition;
use tool_sdk_core::internal::{DefinitionSnapshot, sha256_hex};

use super::WorkerStatus;
use crate::protocol::{DEFINITION, PROGRAM, TOOL_COUNT, WORKER};

/// How often in a row a worker may not answer until it is forgotten.
const MAX_MISSED: u32 = 2;

/// How many tools a worker may have.
const MAX_TOOLS: usize = 1000;

/// A definition as a worker sent it.
#[derive(Debug)]
pub(super) struct SentDefinition {
    pub(super) definition: Definition,
    pub(super) hash: String,
    text: Value,
}

impl SentDefinition {
    /// Returns what pinning records.
    pub(super) fn snapshot(&self) -> DefinitionSnapshot {
        DefinitionSnapshot::new(self.text.clone())
    }
}

/// The known workers by their ids, and the definitions of their tools by their hashes.
#[derive(Debug, Default)]
pub(super) struct KnownWorkers {
    workers: BTreeMap<String, KnownWorker>,
    definitions: HashMap<String, Arc<SentDefinition>>,
}

#[derive(Debug)]
struct KnownWorker {
    program: String,
    /// The hashes of its tools' definitions, by the tools' names.
    tools: BTreeMap<String, String>,
    missed: u32,
}

impl KnownWorkers {
    /// Takes what the workers answered.
    pub(super) fn update(&mut self, answers: Vec<Info>) {
        self.workers.values_mut().for_each(|worker| worker.missed += 1);
        for info in answers {
            self.add_worker(info);
        }
        self.workers.retain(|_, worker| worker.missed < MAX_MISSED);
        let used: std::collections::HashSet<&String> =
            self.workers.values().flat_map(|worker| worker.tools.values()).collect();
        self.definitions.retain(|hash, _| used.contains(hash));
    }

    fn add_worker(&mut self, info: Info) {
        let Some(id) = info.metadata.get(WORKER).filter(|id| is_token(id)) else { return };
        let is_tool = |it: &&endpoint::Info| it.metadata.contains_key(DEFINITION);
        let count = info.endpoints.iter().filter(is_tool).count();
        if info.metadata.get(TOOL_COUNT) != Some(&count.to_string()) {
            return;
        }
        let mut tools = BTreeMap::new();
        for endpoint in info.endpoints.into_iter().take(MAX_TOOLS) {
            let Some(text) = endpoint.metadata.get(DEFINITION) else { continue };
            let hash = sha256_hex(text);
            if !self.definitions.contains_key(&hash) {
                let read = (serde_json::from_str::<Definition>(text), serde_json::from_str(text));
                let (Ok(definition), Ok(text)) = read else {
                    tracing::warn!(
                        worker = id,
                        tool = endpoint.name,
                        "a definition cannot be read"
                    );
                    continue;
                };
                let sent = SentDefinition { definition, hash: hash.clone(), text };
                self.definitions.insert(hash.clone(), Arc::new(sent));
            }
            let name = &self.definitions[&hash].definition.name;
            tools.insert(name.to_string(), hash);
        }
        let mut program = info.metadata.get(PROGRAM).cloned().unwrap_or_default();
        program.truncate(program.floor_char_boundary(80));
        self.workers.insert(id.clone(), KnownWorker { program, tools, missed: 0 });
    }

    /// Forgets a worker that goes.
    pub(super) fn remove(&mut self, worker: &str) {
        self.workers.remove(worker);
    }

    /// Returns the definition of each tool to publish; `published` are those that are now.
    pub(super) fn choose_definitions(
        &self,
        published: &HashMap<String, String>,
    ) -> Vec<Arc<SentDefinition>> {
        let mut offered: BTreeMap<&String, BTreeMap<&String, usize>> = BTreeMap::new();
        for (name, hash) in self.workers.values().flat_map(|worker| &worker.tools) {
            *offered.entry(name).or_default().entry(hash).or_default() += 1;
        }
        let choose = |(name, hashes): (&String, BTreeMap<&String, usize>)| {
            let current = published.get(name).filter(|hash| hashes.contains_key(hash));
            let most = || hashes.iter().max_by_key(|(_, count)| **count).map(|(hash, _)| *hash);
            let hash = current.or_else(most)?;
            self.definitions.get(hash).cloned()
        };
        offered.into_iter().filter_map(choose).collect()
    }

    /// Returns the workers with this definition that answered when they were asked last.
    pub(super) fn workers_with(&self, tool: &str, hash: &str) -> Vec<String> {
        let has = |worker: &KnownWorker| {
            worker.missed == 0 && worker.tools.get(tool).is_some_and(|own| own == hash)
        };
        self.workers.iter().filter(|(_, worker)| has(worker)).map(|(id, _)| id.clone()).collect()
    }

    /// Returns how many workers offer a tool of this name in another definition.
    pub(super) fn count_other_definitions(&self, tool: &str, hash: &str) -> usize {
        let offered = self.workers.values().filter_map(|worker| worker.tools.get(tool));
        offered.filter(|own| *own != hash).count()
    }

    /// Whether every worker answered when it was asked last.
    pub(super) fn all_answer(&self) -> bool {
        self.workers.values().all(|worker| worker.missed == 0)
    }

    /// Returns the workers.
    pub(super) fn statuses(&self) -> Vec<WorkerStatus> {
        let status = |(id, worker): (&String, &KnownWorker)| WorkerStatus {
            id: id.clone(),
            program: worker.program.clone(),
            tools: worker.tools.keys().cloned().collect(),
            answers: worker.missed == 0,
        };
        self.workers.iter().map(status).collect()
    }
}

/// Whether a text can be a part of a subject.
pub(super) fn is_token(text: &str) -> bool {
    (1..=64).contains(&text.len()) && text.bytes().all(|it| it.is_ascii_alphanumeric())
}
