//! What the same calls cost when somebody writes them by hand: the floors.
//!
//! `hand` is the yardstick: a `match` on the name, a derived struct, `serde_json` both
//! ways, and the one check that the schema promises.

use std::collections::HashMap;
use std::future::Future;
use std::hint::black_box;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

use crate::tools::plain;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Add {
    a: i64,
    b: i64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Search {
    query: String,
    #[serde(default = "ten")]
    limit: u32,
    tags: Option<Vec<String>>,
    #[serde(default)]
    exact: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Echo {
    text: String,
}

fn ten() -> u32 {
    10
}

/// Typed calls, no JSON anywhere.
pub(crate) fn plain(name: &str, text: &str) {
    match name {
        "add" => drop(black_box(plain::add(black_box(2), black_box(3)))),
        "search" => {
            let tags = ["rust", "tokio", "async"].map(str::to_owned).to_vec();
            drop(black_box(plain::search("async runtime".to_owned(), 25, Some(tags), true)));
        }
        _ => drop(black_box(text.to_owned())),
    }
}

/// `match` and serde, in the most direct way.
#[inline(never)]
pub(crate) fn hand(name: &str, args: &str) -> Result<String, String> {
    match name {
        "add" => {
            let Add { a, b } = decode(args)?;
            encode(&plain::add(a, b))
        }
        "search" => {
            let Search { query, limit, tags, exact } = decode(args)?;
            if !(1..=100).contains(&limit) {
                return Err("invalid arguments: `limit` must be from 1 to 100".to_owned());
            }
            encode(&plain::search(query, limit, tags, exact))
        }
        "echo" => {
            let Echo { text } = decode(args)?;
            encode(&text)
        }
        _ => Err(format!("there is no tool `{name}`")),
    }
}

fn decode<'a, T: Deserialize<'a>>(args: &'a str) -> Result<T, String> {
    serde_json::from_str(args).map_err(|error| format!("invalid arguments: {error}"))
}

fn encode(value: &impl Serialize) -> Result<String, String> {
    serde_json::to_string(value).map_err(|error| error.to_string())
}

type Running<'a> = Pin<Box<dyn Future<Output = Result<String, String>> + Send + 'a>>;
type Run = for<'a> fn(&'a str) -> Running<'a>;

/// The least that any registry of async tools does: look up, box, await.
pub(crate) struct Registry(HashMap<&'static str, Run>);

impl Registry {
    pub(crate) fn new() -> Self {
        let run: [(_, Run); 3] = [
            ("add", |args| Box::pin(async move { hand("add", args) })),
            ("search", |args| Box::pin(async move { hand("search", args) })),
            ("echo", |args| Box::pin(async move { hand("echo", args) })),
        ];
        Self(run.into())
    }

    pub(crate) async fn call(&self, name: &str, args: &str) -> Result<String, String> {
        match self.0.get(name) {
            Some(run) => run(args).await,
            None => Err(format!("there is no tool `{name}`")),
        }
    }
}
