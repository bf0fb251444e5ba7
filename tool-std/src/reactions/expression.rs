//! Expressions over an event and the values that rules remember, in the Common Expression Language.
//!
//! The language has no loops but those of its macros over lists, and the interpreter has no limit of its
//! own. So the work of an expression is bounded before it runs: by the length of its text, by the length
//! of the lists in an event, and by an estimate of its steps.
//!
//! **Invariant:** an expression that exists names only `event` and `state`, and known functions, and
//! takes a bounded number of steps.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use cel::common::ast::{ComprehensionExpr, EntryExpr, Expr, IdedEntryExpr, IdedExpr};
use cel::objects::{Key, Map as CelMap};
use cel::{Context, Env, ParseErrors, Program, Value as CelValue};
use serde_json::{Map, Number, Value};

/// The longest expression in bytes.
const MAX_EXPRESSION_BYTES: usize = 2_000;

/// How deep brackets nest in an expression.
const MAX_NESTING: usize = 24;

/// How deep the operations of an expression nest: `a + b + c` nests twice.
const MAX_TREE_DEPTH: usize = 64;

/// The stack of the parser.
const PARSER_STACK_BYTES: usize = 16 * 1024 * 1024;

/// The most items of a list or an object of an event that an expression sees.
const MAX_ITEMS: usize = 100;

/// The longest text of an event that an expression sees, in bytes.
const MAX_TEXT_BYTES: usize = 16 * 1024;

/// How deep an expression sees into an event.
const MAX_DEPTH: usize = 16;

/// How many values of an event an expression sees.
const MAX_VALUES: usize = 5_000;

/// How many steps an expression may take, by the estimate.
const MAX_STEPS: u64 = 200_000;

/// The steps that a search with a regular expression is taken for.
const PATTERN_STEPS: u64 = 500;

/// How much time of the processor an expression may take.
const MAX_TIME: Duration = Duration::from_millis(50);

/// The variables of expressions.
const VARIABLES: [&str; 2] = ["event", "state"];

/// The functions of expressions, besides operators and macros.
const FUNCTIONS: [&str; 13] = [
    "bool",
    "bytes",
    "contains",
    "double",
    "dyn",
    "endsWith",
    "int",
    "matches",
    "size",
    "startsWith",
    "string",
    "type",
    "uint",
];

/// The names of types, which `type(value)` is compared with.
const TYPES: [&str; 9] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];

/// The functions of the language.
static STANDARD_ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled expression.
pub(super) struct EventExpression {
    source: String,
    program: Program,
}

impl fmt::Debug for EventExpression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("EventExpression").field(&self.source).finish()
    }
}

impl EventExpression {
    /// Compiles an expression.
    ///
    /// # Errors
    ///
    /// Fails with what is wrong, and where in the text.
    pub(super) fn compile(source: &str) -> Result<Self, String> {
        let source = source.trim();
        if source.is_empty() {
            return Err("the expression is empty".to_owned());
        }
        if source.len() > MAX_EXPRESSION_BYTES {
            let length = source.len();
            return Err(format!(
                "the expression has {length} bytes, but may have {MAX_EXPRESSION_BYTES}"
            ));
        }
        check_nesting(source)?;
        let program = parse_program(source)?;
        let mut names = Vec::new();
        check_names(program.expression(), &mut names)?;
        let steps = estimate_steps(program.expression());
        if steps > MAX_STEPS {
            return Err(format!(
                "the expression may take {steps} steps, but may take {MAX_STEPS}; nest fewer macros"
            ));
        }
        Ok(Self { source: source.to_owned(), program })
    }

    /// Returns the text of the expression.
    pub(super) fn source(&self) -> &str {
        &self.source
    }

    /// Returns the value of the expression.
    ///
    /// # Errors
    ///
    /// Fails with the reason when it has no value for this event, or took too long.
    pub(super) fn evaluate(&self, scope: &EventScope) -> Result<Value, String> {
        let mut context = Context::with_env(Arc::clone(&STANDARD_ENV));
        context.add_variable_from_value(VARIABLES[0], scope.event.clone());
        context.add_variable_from_value(VARIABLES[1], scope.state.clone());
        let mut elapsed = Duration::ZERO;
        // Where only the time of day can be told, the thread may have waited for a processor, so an
        // expression is slow if it is slow twice.
        for _ in 0..2 {
            let start = thread_time();
            let value = self.program.execute(&context).map_err(|error| error.to_string())?;
            elapsed = thread_time().saturating_sub(start);
            if elapsed <= MAX_TIME {
                return to_json(&value);
            }
        }
        Err(format!("it took {elapsed:?}, but may take {MAX_TIME:?}"))
    }

    /// Whether the expression is true.
    ///
    /// # Errors
    ///
    /// Fails as [`evaluate`](Self::evaluate) does, and when the value is neither true nor false.
    pub(super) fn holds(&self, scope: &EventScope) -> Result<bool, String> {
        match self.evaluate(scope)? {
            Value::Bool(holds) => Ok(holds),
            other => {
                let kind = match other {
                    Value::Null => "null",
                    Value::Number(_) => "a number",
                    Value::String(_) => "a text",
                    Value::Array(_) => "a list",
                    _ => "an object",
                };
                Err(format!("it must be true or false, and is {kind}"))
            }
        }
    }
}

/// Parses an expression on a thread of its own, because the parser recurses deeply.
fn parse_program(source: &str) -> Result<Program, String> {
    let parse = || {
        let program = STANDARD_ENV.compile(source).map_err(|errors| describe_errors(&errors))?;
        // What nests deeper is dropped here as well, which recurses.
        match tree_depth(program.expression()) {
            0..=MAX_TREE_DEPTH => Ok(program),
            depth => Err(format!(
                "the expression has {depth} operations inside of each other, but may have \
                 {MAX_TREE_DEPTH}"
            )),
        }
    };
    std::thread::scope(|scope| {
        let parser = std::thread::Builder::new().stack_size(PARSER_STACK_BYTES);
        let parser = parser.spawn_scoped(scope, parse).map_err(|error| error.to_string())?;
        parser.join().map_err(|_| "the parser failed".to_owned())?
    })
}

/// Returns the first error of the parser.
fn describe_errors(errors: &ParseErrors) -> String {
    match errors.errors.first() {
        Some(error) => {
            let (line, column) = error.pos;
            // What the parser expects are the names of its tokens, which say nothing to users.
            let message = error.msg.split(" expecting ").next().unwrap_or_default();
            format!("the expression is wrong at {line}:{column}: {message}")
        }
        None => "the expression is wrong".to_owned(),
    }
}

/// Returns the operands of an expression.
fn operands(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.as_deref().into_iter().chain(&call.args).collect(),
        Expr::Comprehension(macro_call) => vec![
            &macro_call.iter_range,
            &macro_call.accu_init,
            &macro_call.loop_cond,
            &macro_call.loop_step,
            &macro_call.result,
        ],
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Map(map) => map.entries.iter().flat_map(entry_parts).collect(),
        Expr::Struct(fields) => fields.entries.iter().flat_map(entry_parts).collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Ident(_) | Expr::Literal(_) | Expr::Unspecified => Vec::new(),
    }
}

/// Returns how deep the operations of an expression nest.
fn tree_depth(expression: &IdedExpr) -> usize {
    1 + operands(expression).into_iter().map(tree_depth).max().unwrap_or(0)
}

/// Fails when brackets, or operators before an operand, nest too deep.
fn check_nesting(source: &str) -> Result<(), String> {
    let (mut depth, mut prefixes) = (0_usize, 0_usize);
    for c in source.chars().filter(|c| !c.is_whitespace()) {
        match c {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        prefixes = if matches!(c, '!' | '-') { prefixes + 1 } else { 0 };
        if depth.max(prefixes) > MAX_NESTING {
            return Err(format!("the expression nests deeper than {MAX_NESTING} levels"));
        }
    }
    Ok(())
}

/// What an expression sees: an event, and the values that rules remember.
pub(super) struct EventScope {
    event: CelValue,
    state: CelValue,
}

impl EventScope {
    pub(super) fn new(event: &Value, state: &Value) -> Self {
        Self { event: to_bounded_value(event), state: to_bounded_value(state) }
    }

    pub(super) fn set_state(&mut self, state: &Value) {
        self.state = to_bounded_value(state);
    }
}

/// Converts JSON. Long texts are cut, and what is too much, too deep or behind the most items is left
/// out.
fn to_bounded_value(value: &Value) -> CelValue {
    let mut left = MAX_VALUES;
    convert_value(value, MAX_DEPTH, &mut left)
}

fn convert_value(value: &Value, depth: usize, left: &mut usize) -> CelValue {
    *left = left.saturating_sub(1);
    match value {
        Value::Null => CelValue::Null,
        Value::Bool(it) => CelValue::Bool(*it),
        Value::Number(number) => convert_number(number),
        Value::String(text) => {
            let end = text.floor_char_boundary(MAX_TEXT_BYTES.min(text.len()));
            CelValue::String(text[..end].to_owned().into())
        }
        Value::Array(items) => {
            let mut list = Vec::new();
            for item in items.iter().take(MAX_ITEMS) {
                if depth == 0 || *left == 0 {
                    break;
                }
                list.push(convert_value(item, depth - 1, left));
            }
            CelValue::List(list.into())
        }
        Value::Object(entries) => {
            let mut map = HashMap::new();
            for (key, value) in entries.iter().take(MAX_ITEMS) {
                if depth == 0 || *left == 0 {
                    break;
                }
                let key = Key::String(key.clone().into());
                map.insert(key, convert_value(value, depth - 1, left));
            }
            CelValue::Map(CelMap { map: map.into() })
        }
    }
}

/// Whole numbers become `int`, so that they can be added to the numbers of an expression.
fn convert_number(number: &Number) -> CelValue {
    match (number.as_i64(), number.as_u64()) {
        (Some(number), _) => CelValue::Int(number),
        (None, Some(number)) => CelValue::UInt(number),
        _ => CelValue::Float(number.as_f64().unwrap_or_default()),
    }
}

/// Returns how much time of the processor this thread has used. It does not pass while the thread waits for
/// a processor, so the load of the machine makes no expression slow.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns the time since the first call.
#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn thread_time() -> Duration {
    static START: LazyLock<std::time::Instant> = LazyLock::new(std::time::Instant::now);
    START.elapsed()
}

fn to_json(value: &CelValue) -> Result<Value, String> {
    Ok(match value {
        CelValue::Null => Value::Null,
        CelValue::Bool(it) => (*it).into(),
        CelValue::Int(number) => (*number).into(),
        CelValue::UInt(number) => (*number).into(),
        CelValue::Float(number) => (*number).into(),
        CelValue::String(text) => text.as_str().into(),
        CelValue::List(items) => {
            items.iter().map(to_json).collect::<Result<Vec<Value>, String>>()?.into()
        }
        CelValue::Map(map) => {
            let mut entries: Vec<(String, Value)> = Vec::new();
            for (key, value) in &*map.map {
                let Key::String(key) = key else {
                    return Err("an object must have texts as keys".to_owned());
                };
                entries.push((key.to_string(), to_json(value)?));
            }
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Value::Object(Map::from_iter(entries))
        }
        other => return Err(format!("its value is no JSON: {}", other.type_of())),
    })
}

/// Fails when the expression names a variable or a function that there is not. `bound` are the
/// variables of the macros around it.
fn check_names<'e>(expression: &'e IdedExpr, bound: &mut Vec<&'e str>) -> Result<(), String> {
    match &expression.expr {
        Expr::Ident(name) => check_variable(name, bound),
        Expr::Call(call) => {
            check_function(&call.func_name)?;
            operands(expression).into_iter().try_for_each(|operand| check_names(operand, bound))
        }
        Expr::Comprehension(macro_call) => {
            let ComprehensionExpr {
                iter_range,
                iter_var,
                iter_var2,
                accu_var,
                accu_init,
                loop_cond,
                loop_step,
                result,
            } = &**macro_call;
            check_names(iter_range, bound)?;
            check_names(accu_init, bound)?;
            let outer = bound.len();
            bound.extend([iter_var.as_str(), accu_var.as_str()]);
            bound.extend(iter_var2.as_deref());
            let checked = [loop_cond, loop_step, result]
                .into_iter()
                .try_for_each(|part| check_names(part, bound));
            bound.truncate(outer);
            checked
        }
        Expr::Struct(_) => {
            Err("there are no structs; write an object as `{\"key\": value}`".to_owned())
        }
        _ => operands(expression).into_iter().try_for_each(|operand| check_names(operand, bound)),
    }
}

fn check_variable(name: &str, bound: &[&str]) -> Result<(), String> {
    if bound.contains(&name) || VARIABLES.contains(&name) || TYPES.contains(&name) {
        return Ok(());
    }
    Err(format!("there is no variable `{name}`; the variables are {}", VARIABLES.join(" and ")))
}

fn check_function(name: &str) -> Result<(), String> {
    // Operators have names such as `_&&_` and `!_`.
    let is_operator = name.contains('_') || name.starts_with('@');
    if is_operator || FUNCTIONS.contains(&name) {
        return Ok(());
    }
    Err(format!("there is no function `{name}`; the functions are {}", FUNCTIONS.join(", ")))
}

/// Returns the expressions of an entry of an object.
fn entry_parts(entry: &IdedEntryExpr) -> Vec<&IdedExpr> {
    match &entry.expr {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
    }
}

/// Estimates how many steps the expression takes at most.
fn estimate_steps(expression: &IdedExpr) -> u64 {
    let add = |parts: &[&IdedExpr]| {
        parts.iter().map(|part| estimate_steps(part)).fold(1_u64, u64::saturating_add)
    };
    match &expression.expr {
        Expr::Comprehension(macro_call) => {
            let once = [&macro_call.iter_range, &macro_call.accu_init, &macro_call.result];
            let each = [&macro_call.loop_cond, &macro_call.loop_step];
            let items = estimate_items(&macro_call.iter_range);
            add(&once).saturating_add(items.saturating_mul(add(&each)))
        }
        Expr::Call(call) if call.func_name == "matches" => {
            add(&operands(expression)).saturating_add(PATTERN_STEPS)
        }
        _ => add(&operands(expression)),
    }
}

/// Estimates how many items the value of the expression has at most.
fn estimate_items(expression: &IdedExpr) -> u64 {
    let most = MAX_ITEMS as u64;
    match &expression.expr {
        Expr::List(list) => list
            .elements
            .iter()
            .map(estimate_items)
            .max()
            .unwrap_or(0)
            .max(list.elements.len() as u64),
        // Of several operands, such as those of `+` and of `?:`, the result may have all items.
        Expr::Call(call) => {
            let target = call.target.as_deref().map_or(0, estimate_items);
            call.args.iter().map(estimate_items).fold(target, u64::saturating_add).max(most)
        }
        Expr::Comprehension(macro_call) => estimate_items(&macro_call.iter_range).max(most),
        Expr::Map(map) => (map.entries.len() as u64).max(most),
        _ => most,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn scope() -> EventScope {
        let event = json!({
            "type": "failed",
            "tool": "shell",
            "elapsed_ms": 1200,
            "data": { "files": ["a.rs", "b.md"], "ratio": 0.5, "big": u64::MAX },
            "list": (0..1000).collect::<Vec<u32>>(),
        });
        EventScope::new(&event, &json!({ "failures": 2 }))
    }

    fn evaluate(text: &str) -> Result<Value, String> {
        EventExpression::compile(text)?.evaluate(&scope())
    }

    // F163: conditions over the fields of events.
    #[test]
    fn expressions_see_the_event_and_the_state() {
        for (text, value) in [
            ("event.tool == 'shell' && event.elapsed_ms > 1000", json!(true)),
            ("event.data.files.exists(f, f.endsWith('.md'))", json!(true)),
            ("event.data.files.filter(f, f.matches('^a'))", json!(["a.rs"])),
            ("has(event.missing) || state.failures + 1 == 3", json!(true)),
            ("has(state.n) ? state.n : 0", json!(0)),
            ("event.data.ratio < 1.0 && type(event.tool) == string", json!(true)),
            ("size(event.list)", json!(MAX_ITEMS)),
            ("event['tool'] + \"!\"", json!("shell!")),
            ("{'n': state.failures}", json!({ "n": 2 })),
            ("event.data.big > 1u", json!(true)),
        ] {
            assert_eq!(evaluate(text), Ok(value), "{text}");
        }
    }

    #[test]
    fn wrong_expressions_are_refused_when_they_are_compiled() {
        for (text, words) in [
            ("", "is empty"),
            ("event.tool ==", "is wrong at 1:"),
            ("evnt.tool == 'a'", "there is no variable `evnt`"),
            ("event.tool.lower() == 'a'", "there is no function `lower`"),
            ("[1].all(x, y > 1)", "there is no variable `y`"),
            ("Thing{a: 1}", "no structs"),
            (&"a".repeat(2001), "has 2001 bytes"),
            ("event.a.all(x, event.b.all(y, event.c.all(z, x == y && y == z)))", "steps"),
            ("(event.a + event.a + event.a).all(x, event.b.all(y, x == y + y + y + y))", "steps"),
        ] {
            let problem = EventExpression::compile(text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }

    // The parser and the interpreter recurse, and a stack that overflows ends the process.
    #[test]
    fn deep_expressions_do_not_overflow_the_stack() {
        for (start, repeated, end) in [
            ("", "(", "1"),
            ("", "[", "1"),
            ("", "{1:", "1"),
            ("", "size(", "'a'"),
            ("", "!", "true"),
            ("", "-", "1"),
            ("", "- ", "1"),
            ("", "!-", "1"),
            ("", "true?1:", "2"),
            ("", "true||", "true"),
            ("", "1+", "1"),
            ("", "1==", "1"),
            ("event", ".a", ""),
            ("event", "[0]", ""),
            ("event", ".f(1)", ""),
            ("event", ".map(x,x)", ""),
            ("'", "\\\\", "'"),
        ] {
            let count = (MAX_EXPRESSION_BYTES - 20) / repeated.len();
            let text = format!("{start}{}{end}", repeated.repeat(count));
            if let Ok(compiled) = EventExpression::compile(&text) {
                let _ = compiled.evaluate(&scope());
            }
        }
        let right = format!("{}1{}", "(".repeat(MAX_NESTING), ")".repeat(MAX_NESTING));
        assert_eq!(evaluate(&right), Ok(json!(1)));
    }

    #[test]
    fn what_has_no_value_is_an_error_and_never_true() {
        for text in ["event.missing == 1", "state.failures", "1 / 0 == 1", "event.tool > 1"] {
            let compiled = EventExpression::compile(text).unwrap();
            assert!(compiled.holds(&scope()).is_err(), "{text}");
        }
    }

    #[test]
    fn events_are_bounded_for_expressions() {
        let mut deep = json!(1);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        let wide: Vec<Value> = (0..150).map(|_| json!((0..150).collect::<Vec<u32>>())).collect();
        let event = json!({ "deep": deep, "text": "ä".repeat(20_000), "wide": wide });
        let scope = EventScope::new(&event, &Value::Null);
        let evaluate = |text: &str| EventExpression::compile(text).unwrap().evaluate(&scope);
        let length = evaluate("size(event.text)").unwrap().as_u64().unwrap();
        assert_eq!(length, MAX_TEXT_BYTES as u64 / 2);
        let rows = evaluate("size(event.wide)").unwrap().as_u64().unwrap();
        assert!(rows < 150, "{rows}");
        // The most expensive expression that is accepted ends soon.
        let nested = "event.wide.all(x, event.wide.all(y, x == x))";
        assert!(EventExpression::compile(nested).is_ok());
    }
}
