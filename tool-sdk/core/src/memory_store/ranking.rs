//! Rankings of notes: by similarity of embeddings, and several rankings as one.
//!
//! **Invariant:** equal inputs give equal rankings; ties keep the order of the input.

/// The constant of reciprocal rank fusion, as in the paper of Cormack, Clarke and Büttcher (2009).
const RRF_CONSTANT: f64 = 60.0;

/// Fuses rankings by reciprocal rank: an item scores `1 / (60 + rank)` in each that has it.
#[must_use]
pub fn fuse_rankings<T: Clone + PartialEq>(rankings: &[Vec<T>]) -> Vec<T> {
    let mut scores: Vec<(T, f64)> = Vec::new();
    for ranking in rankings {
        for (rank, item) in ranking.iter().enumerate() {
            #[expect(clippy::cast_precision_loss, reason = "ranks are far below 2^52")]
            let score = 1.0 / (RRF_CONSTANT + 1.0 + rank as f64);
            match scores.iter_mut().find(|(known, _)| known == item) {
                Some((_, sum)) => *sum += score,
                None => scores.push((item.clone(), score)),
            }
        }
    }
    scores.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    scores.into_iter().map(|(item, _)| item).collect()
}

/// Ranks items by the cosine similarity of their vectors to `wanted`, the most similar first, at
/// most `limit`. Vectors of another length are left out, and so are those that are not similar.
#[must_use]
pub fn rank_by_similarity<T>(
    wanted: &[f32],
    items: impl IntoIterator<Item = (T, Vec<f32>)>,
    limit: usize,
) -> Vec<T> {
    let mut scored: Vec<(T, f64)> = items
        .into_iter()
        .filter(|(_, vector)| vector.len() == wanted.len())
        .map(|(item, vector)| (item, cosine_similarity(wanted, &vector)))
        .filter(|(_, similarity)| *similarity > 0.0)
        .collect();
    scored.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    scored.truncate(limit);
    scored.into_iter().map(|(item, _)| item).collect()
}

fn cosine_similarity(a: &[f32], b: &[f32]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| -> f64 {
        a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
    };
    let length = (dot(a, a) * dot(b, b)).sqrt();
    if length > 0.0 { dot(a, b) / length } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_several_rankings_have_comes_first() {
        let fused = fuse_rankings(&[vec!["a", "b", "c"], vec!["c", "d"]]);
        assert_eq!(fused, ["c", "a", "b", "d"]);
        assert_eq!(fuse_rankings::<u8>(&[]), [0; 0]);
    }

    #[test]
    fn the_most_similar_comes_first() {
        let items = [
            ("same", vec![1.0, 0.0]),
            ("close", vec![1.0, 0.5]),
            ("across", vec![0.0, 1.0]),
            ("longer", vec![1.0, 0.0, 0.0]),
            ("zero", vec![0.0, 0.0]),
        ];
        assert_eq!(rank_by_similarity(&[2.0, 0.0], items, 10), ["same", "close"]);
    }
}
