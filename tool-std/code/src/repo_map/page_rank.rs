//! PageRank over a weighted graph, by power iteration.
//!
//! **Invariant:** the ranks are positive and add up to 1.

/// The share of its rank that a node passes on along its edges.
const DAMPING: f64 = 0.85;

const MAX_ROUNDS: usize = 50;

/// The iteration ends when the ranks change by less in all.
const TOLERANCE: f64 = 1e-6;

/// An edge with a positive weight.
pub(super) struct RankedEdge {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) weight: f64,
}

/// Returns the rank of each node. What is not passed on goes to the nodes of `focus` by their
/// weights, or to all nodes when no weight is positive.
pub(super) fn page_rank(nodes: usize, edges: &[RankedEdge], focus: &[f64]) -> Vec<f64> {
    if nodes == 0 {
        return Vec::new();
    }
    let edges = merge_edges(edges);
    let base = base_ranks(nodes, focus);
    let mut leaving = vec![0.0; nodes];
    for edge in &edges {
        leaving[edge.from] += edge.weight;
    }
    let mut ranks = base.clone();
    for _ in 0..MAX_ROUNDS {
        let stuck: f64 =
            ranks.iter().zip(&leaving).filter(|(_, out)| **out == 0.0).map(|(rank, _)| rank).sum();
        let returned = 1.0 - DAMPING + DAMPING * stuck;
        let mut next: Vec<f64> = base.iter().map(|share| returned * share).collect();
        for edge in &edges {
            next[edge.to] += DAMPING * ranks[edge.from] * edge.weight / leaving[edge.from];
        }
        let change: f64 = next.iter().zip(&ranks).map(|(new, old)| (new - old).abs()).sum();
        ranks = next;
        if change < TOLERANCE {
            break;
        }
    }
    ranks
}

/// Adds up the edges between the same nodes.
fn merge_edges(edges: &[RankedEdge]) -> Vec<RankedEdge> {
    let mut sorted: Vec<(usize, usize, f64)> =
        edges.iter().map(|edge| (edge.from, edge.to, edge.weight)).collect();
    sorted.sort_by_key(|(from, to, _)| (*from, *to));
    let mut merged: Vec<RankedEdge> = Vec::new();
    for (from, to, weight) in sorted {
        match merged.last_mut() {
            Some(last) if (last.from, last.to) == (from, to) => last.weight += weight,
            _ => merged.push(RankedEdge { from, to, weight }),
        }
    }
    merged
}

/// A tenth goes to all nodes even when there is a focus, so that every rank is positive.
fn base_ranks(nodes: usize, focus: &[f64]) -> Vec<f64> {
    let (all, total) = (1.0 / nodes as f64, focus.iter().sum::<f64>());
    if total <= 0.0 {
        return vec![all; nodes];
    }
    focus.iter().map(|weight| 0.1 * all + 0.9 * weight / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(from: usize, to: usize, weight: f64) -> RankedEdge {
        RankedEdge { from, to, weight }
    }

    #[test]
    fn ranks_add_up_to_one() {
        let edges = [edge(0, 1, 1.0), edge(1, 2, 2.0), edge(3, 2, 0.5), edge(2, 2, 0.1)];
        for focus in [vec![0.0; 5], vec![0.0, 0.0, 0.0, 1.0, 0.0]] {
            let ranks = page_rank(5, &edges, &focus);
            assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{ranks:?}");
            assert!(ranks.iter().all(|rank| *rank > 0.0), "{ranks:?}");
        }
    }

    #[test]
    fn the_referenced_node_has_more_rank() {
        let ranks = page_rank(3, &[edge(0, 1, 1.0), edge(2, 1, 1.0)], &[0.0; 3]);
        assert!(ranks[1] > ranks[0] && ranks[1] > ranks[2], "{ranks:?}");
    }

    #[test]
    fn the_focus_has_more_rank() {
        let ranks = page_rank(3, &[edge(0, 1, 1.0)], &[0.0, 0.0, 1.0]);
        assert!(ranks[2] > ranks[1], "{ranks:?}");
    }
}
