//! The parts of a question: what a model is asked for, and how its answer is read.

/// Returns the task of the agent that splits a question.
pub(super) fn planning_task(question: &str, max_parts: usize) -> String {
    format!(
        "Split the question below into at most {max_parts} questions that can be researched \
         separately and together answer it. Each has to be understood without the others. Answer with \
         one question a line and nothing else; use no tools.\n\n{question}"
    )
}

/// Reads the questions of a plan, at most `max_parts`: the lines of the text without the marks of a
/// list. A line that ends in a colon introduces the others.
pub(super) fn parse_plan(plan: &str, max_parts: usize) -> Vec<String> {
    let lines = plan.lines().map(|line| strip_list_mark(line.trim()));
    let is_question = |line: &&str| line.contains(char::is_alphabetic) && !line.ends_with(':');
    lines.filter(is_question).take(max_parts).map(Into::into).collect()
}

/// Strips `- `, `* `, `• `, `1. ` and `1) `.
fn strip_list_mark(line: &str) -> &str {
    let unnumbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let numbered = ['.', ')'].iter().find_map(|&mark| unnumbered.strip_prefix(mark));
    let item = match numbered {
        Some(item) if unnumbered.len() < line.len() => item,
        _ => ["- ", "* ", "• "].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line),
    };
    item.trim_start()
}
