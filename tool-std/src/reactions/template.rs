//! Arguments of an action with expressions in them: `"${event.tool} failed"`.
//!
//! **Invariant:** an expression fills a value, and never becomes a key, a tool's name or another
//! expression.

use serde_json::{Map, Value};

use super::expression::{EventExpression, EventScope};

/// The most characters that an expression adds to a text.
const MAX_TEXT_CHARS: usize = 2_000;

/// How many expressions one action may have.
const MAX_EXPRESSIONS: usize = 32;

/// The arguments of an action.
#[derive(Debug)]
pub(super) struct ArgumentTemplate {
    arguments: Vec<(String, ValueTemplate)>,
}

#[derive(Debug)]
enum ValueTemplate {
    Fixed(Value),
    /// One expression, whose value keeps its type.
    Typed(EventExpression),
    Text(Vec<TextPart>),
    List(Vec<Self>),
    Object(Vec<(String, Self)>),
}

#[derive(Debug)]
enum TextPart {
    Fixed(String),
    Expression(EventExpression),
}

/// Whether the expressions of an argument keep the type of their value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ValueKind {
    Any,
    Text,
}

impl ArgumentTemplate {
    /// Compiles the expressions of the arguments. Those in `typed` keep the type of a value that is
    /// one expression; in the others it becomes text.
    ///
    /// # Errors
    ///
    /// Fails with the argument and what is wrong in it.
    pub(super) fn compile(arguments: &Map<String, Value>, typed: &[&str]) -> Result<Self, String> {
        let mut count = 0;
        let mut compiled = Vec::new();
        for (name, value) in arguments {
            let is_typed = typed.contains(&name.as_str());
            let kind = if is_typed { ValueKind::Any } else { ValueKind::Text };
            let value = ValueTemplate::compile(value, kind, &mut count)
                .map_err(|problem| format!("`{name}`: {problem}"))?;
            compiled.push((name.clone(), value));
        }
        if count > MAX_EXPRESSIONS {
            return Err(format!("has {count} expressions, but may have {MAX_EXPRESSIONS}"));
        }
        Ok(Self { arguments: compiled })
    }

    /// Whether an argument has an expression.
    pub(super) fn has_expressions(&self) -> bool {
        self.arguments.iter().any(|(_, value)| value.has_expressions())
    }

    /// Returns the arguments for an event.
    ///
    /// # Errors
    ///
    /// Fails with the argument whose expression cannot be evaluated.
    pub(super) fn render(&self, scope: &EventScope) -> Result<Value, String> {
        let mut arguments = Map::new();
        for (name, value) in &self.arguments {
            let value = value.render(scope).map_err(|problem| format!("`{name}`: {problem}"))?;
            arguments.insert(name.clone(), value);
        }
        Ok(Value::Object(arguments))
    }
}

impl ValueTemplate {
    fn compile(value: &Value, kind: ValueKind, count: &mut usize) -> Result<Self, String> {
        Ok(match value {
            Value::String(text) => Self::compile_text(text, kind, count)?,
            Value::Array(items) => {
                let items = items.iter().map(|item| Self::compile(item, kind, count));
                Self::List(items.collect::<Result<_, _>>()?)
            }
            Value::Object(entries) => {
                let entries = entries.iter().map(|(key, value)| {
                    Ok::<_, String>((key.clone(), Self::compile(value, kind, count)?))
                });
                Self::Object(entries.collect::<Result<_, _>>()?)
            }
            other => Self::Fixed(other.clone()),
        })
    }

    fn compile_text(text: &str, kind: ValueKind, count: &mut usize) -> Result<Self, String> {
        let mut parts = split_text(text)?;
        *count += parts.iter().filter(|part| matches!(part, TextPart::Expression(_))).count();
        Ok(match (&*parts, kind) {
            ([TextPart::Expression(_)], ValueKind::Any) => match parts.pop() {
                Some(TextPart::Expression(expression)) => Self::Typed(expression),
                _ => Self::Text(parts),
            },
            ([], _) => Self::Fixed("".into()),
            ([TextPart::Fixed(fixed)], _) => Self::Fixed(fixed.clone().into()),
            _ => Self::Text(parts),
        })
    }

    fn has_expressions(&self) -> bool {
        match self {
            Self::Fixed(_) => false,
            Self::Typed(_) => true,
            Self::Text(parts) => parts.iter().any(|it| matches!(it, TextPart::Expression(_))),
            Self::List(items) => items.iter().any(Self::has_expressions),
            Self::Object(entries) => entries.iter().any(|(_, value)| value.has_expressions()),
        }
    }

    fn render(&self, scope: &EventScope) -> Result<Value, String> {
        Ok(match self {
            Self::Fixed(value) => value.clone(),
            Self::Typed(expression) => expression.evaluate(scope)?,
            Self::Text(parts) => {
                let mut text = String::new();
                for part in parts {
                    match part {
                        TextPart::Fixed(fixed) => text.push_str(fixed),
                        TextPart::Expression(expression) => {
                            text.push_str(&to_text(&expression.evaluate(scope)?));
                        }
                    }
                }
                text.into()
            }
            Self::List(items) => {
                items.iter().map(|item| item.render(scope)).collect::<Result<Vec<_>, _>>()?.into()
            }
            Self::Object(entries) => {
                let mut object = Map::new();
                for (key, value) in entries {
                    object.insert(key.clone(), value.render(scope)?);
                }
                object.into()
            }
        })
    }
}

/// Splits a text at its expressions, each between `${` and `}`. `$${` is a plain `${`.
fn split_text(text: &str) -> Result<Vec<TextPart>, String> {
    let (mut parts, mut fixed, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            fixed.push_str(before);
            fixed.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        fixed.push_str(&rest[..at]);
        let behind = &rest[at + 2..];
        let end = expression_end(behind).ok_or("`${` has no `}`; `$${` is a plain `${`")?;
        if !fixed.is_empty() {
            parts.push(TextPart::Fixed(std::mem::take(&mut fixed)));
        }
        parts.push(TextPart::Expression(EventExpression::compile(&behind[..end])?));
        rest = &behind[end + 1..];
    }
    fixed.push_str(rest);
    if !fixed.is_empty() {
        parts.push(TextPart::Fixed(fixed));
    }
    Ok(parts)
}

/// Returns where the expression ends at whose start `text` begins: at the brace that closes it,
/// outside of quotes.
fn expression_end(text: &str) -> Option<usize> {
    let (mut depth, mut quote, mut is_escaped) = (0_u32, None, false);
    for (at, c) in text.char_indices() {
        if let Some(open) = quote {
            if is_escaped {
                is_escaped = false;
            } else if c == '\\' {
                is_escaped = true;
            } else if c == open {
                quote = None;
            }
            continue;
        }
        match c {
            '"' | '\'' => quote = Some(c),
            '{' => depth += 1,
            '}' if depth == 0 => return Some(at),
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Returns a value as text: a string as it is, anything else as JSON.
fn to_text(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((end, _)) => format!("{} …", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn render(arguments: &Value) -> Result<Value, String> {
        let event =
            json!({ "tool": "shell", "elapsed_ms": 20, "data": { "text": "x".repeat(5000) } });
        let scope = EventScope::new(&event, &json!({ "n": 1 }));
        ArgumentTemplate::compile(arguments.as_object().unwrap(), &["value"])?.render(&scope)
    }

    #[test]
    fn expressions_fill_texts_and_typed_values() {
        for (written, rendered) in [
            (json!({ "message": "a ${event.tool}!" }), json!({ "message": "a shell!" })),
            (json!({ "message": "${event.elapsed_ms}" }), json!({ "message": "20" })),
            (json!({ "value": "${event.elapsed_ms + 1}" }), json!({ "value": 21 })),
            (json!({ "value": ["${state.n}", 7] }), json!({ "value": [1, 7] })),
            (json!({ "value": "${{'a': [state.n]}}" }), json!({ "value": { "a": [1] } })),
            (json!({ "value": "n is ${state.n}" }), json!({ "value": "n is 1" })),
            (json!({ "message": "${'}' + \"{\"}" }), json!({ "message": "}{" })),
            (json!({ "message": "costs $${5} $5 $" }), json!({ "message": "costs ${5} $5 $" })),
        ] {
            assert_eq!(render(&written).as_ref(), Ok(&rendered), "{written}");
        }
        let long = render(&json!({ "message": "${event.data.text}" })).unwrap();
        assert_eq!(long["message"].as_str().unwrap().chars().count(), MAX_TEXT_CHARS + 2);
    }

    #[test]
    fn wrong_expressions_are_told_with_their_argument() {
        for (written, words) in [
            (json!({ "message": "${event.tool" }), "has no `}`"),
            (json!({ "message": "${event. }" }), "`message`:"),
            (json!({ "message": "${event.missing}" }), "missing"),
            (json!({ "message": "${1}".repeat(33) }), "33 expressions"),
        ] {
            let problem = render(&written).unwrap_err();
            assert!(problem.contains(words), "{written}: {problem}");
        }
    }
}
