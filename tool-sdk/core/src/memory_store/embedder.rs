//! The port for embeddings: vectors by which notes are compared by meaning.

use futures_util::future::BoxFuture;

use crate::error::ToolError;

/// A vector for a text, of one model.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "embedders construct embeddings")]
pub struct Embedding {
    /// The model; only vectors of one model are compared.
    pub model: String,
    /// The vector.
    pub vector: Vec<f32>,
}

/// Turns texts into vectors, so that notes are also found by meaning.
///
/// Without one, or when it fails, notes are ranked by their words.
///
/// # Examples
///
/// ```
/// use tool_sdk::{Embedder, ToolError};
///
/// /// Counts letters.
/// struct LetterCounts;
///
/// impl Embedder for LetterCounts {
///     fn model(&self) -> &str {
///         "letter-counts"
///     }
///
///     async fn embed_texts(&self, texts: Vec<String>) -> Result<Vec<Vec<f32>>, ToolError> {
///         let count = |text: &str, c| text.matches(c).count() as f32;
///         Ok(texts.iter().map(|text| ('a'..='z').map(|c| count(text, c)).collect()).collect())
///     }
/// }
/// ```
pub trait Embedder: Send + Sync + 'static {
    /// Returns the name of the model, which is kept with each vector.
    fn model(&self) -> &str;

    /// Returns a vector for each text, in their order.
    fn embed_texts(
        &self,
        texts: Vec<String>,
    ) -> impl Future<Output = Result<Vec<Vec<f32>>, ToolError>> + Send;
}

/// An [`Embedder`] behind a pointer; implemented for every embedder.
pub(crate) trait DynEmbedder: Send + Sync + 'static {
    fn model(&self) -> &str;
    fn embed_texts(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ToolError>>;
}

impl<E: Embedder> DynEmbedder for E {
    fn model(&self) -> &str {
        Embedder::model(self)
    }

    fn embed_texts(&self, texts: Vec<String>) -> BoxFuture<'_, Result<Vec<Vec<f32>>, ToolError>> {
        Box::pin(Embedder::embed_texts(self, texts))
    }
}
