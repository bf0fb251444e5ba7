//! Keeps the symbols of texts by their content.
//!
//! **Invariant:** a text is looked up by a hash with random keys and its length, so a text cannot be
//! made that gets the symbols of another one.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::language::SourceLanguage;
use crate::symbol::FileSymbols;

/// The maximum number of bytes of memory that the symbols take.
const MAX_MEMORY: usize = 256 << 20;

/// Symbols of texts, shared by its clones. It holds about 256 MiB at most; past that, it forgets all.
///
/// # Examples
///
/// ```
/// use tool_std_code::{SourceLanguage, SymbolCache, SymbolExtractor};
///
/// let (cache, mut extractor) = (SymbolCache::default(), SymbolExtractor::new());
/// let mut extract = |text: &str| {
///     cache.get_or_extract(SourceLanguage::Rust, text, || {
///         extractor.extract_symbols(SourceLanguage::Rust, text, &|| false)
///     })
/// };
/// let first = extract("fn main() {}").unwrap();
/// let second = extract("fn main() {}").unwrap();
/// assert!(std::sync::Arc::ptr_eq(&first, &second));
/// ```
#[derive(Clone, Debug, Default)]
pub struct SymbolCache(Arc<CacheState>);

#[derive(Debug, Default)]
struct CacheState {
    keys: RandomState,
    entries: Mutex<CacheEntries>,
}

#[derive(Debug, Default)]
struct CacheEntries {
    symbols: HashMap<TextKey, Arc<FileSymbols>>,
    memory: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct TextKey {
    language: SourceLanguage,
    length: usize,
    hash: u64,
}

impl SymbolCache {
    /// Returns the symbols of `text`, which `extract` makes when they are not known.
    ///
    /// # Errors
    ///
    /// Fails when `extract` does; then nothing is kept.
    pub fn get_or_extract<E>(
        &self,
        language: SourceLanguage,
        text: &str,
        extract: impl FnOnce() -> Result<FileSymbols, E>,
    ) -> Result<Arc<FileSymbols>, E> {
        let hash = self.0.keys.hash_one(text);
        let key = TextKey { language, length: text.len(), hash };
        if let Some(known) = self.lock().symbols.get(&key) {
            return Ok(Arc::clone(known));
        }
        let symbols = Arc::new(extract()?);
        let mut entries = self.lock();
        let memory = symbols.memory_bytes();
        if entries.memory + memory > MAX_MEMORY {
            *entries = CacheEntries::default();
        }
        if entries.symbols.insert(key, Arc::clone(&symbols)).is_none() {
            entries.memory += memory;
        }
        Ok(symbols)
    }

    fn lock(&self) -> MutexGuard<'_, CacheEntries> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
