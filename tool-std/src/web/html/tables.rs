//! Brings tables into the form that the serializer knows: rows of equally many cells, without tables in
//! them.
//!
//! **Invariant:** the number of cells that are added to a page is bounded, however large its spans are.

use dom_query::{Document, NodeRef};

/// How many cells may be added to the tables of a page.
const MAX_ADDED_CELLS: usize = 5_000;

/// How many columns a table may have to be made even.
const MAX_COLUMNS: usize = 100;

/// Writes captions before their tables, repeats cells that span several rows, and makes tables that
/// arrange a page blocks.
pub(super) fn rewrite_tables(document: &Document) {
    for caption in document.select("table > caption").nodes() {
        if let Some(table) = caption.parent() {
            table.before_html(format!("<p><strong>{}</strong></p>", caption.inner_html()));
            caption.remove_from_parent();
        }
    }
    let mut left = MAX_ADDED_CELLS;
    for table in document.select("table").nodes() {
        let has_tables = table.descendants_it().any(|it| it.is_element() && it.has_name("table"));
        if has_tables || table.is("[role=presentation], [role=none]") {
            own_parts(table).iter().for_each(|part| part.rename("div"));
            table.rename("div");
        } else {
            even_rows(document, table, &mut left);
        }
    }
}

/// Returns the rows, groups of rows and cells of a table, without those of tables in it.
fn own_parts<'t>(table: &NodeRef<'t>) -> Vec<NodeRef<'t>> {
    let (mut parts, mut rest) = (Vec::new(), table.children());
    while let Some(part) = rest.pop() {
        if !part.is("thead, tbody, tfoot, tr, td, th") {
            continue;
        }
        if part.is("thead, tbody, tfoot, tr") {
            rest.extend(part.children());
        }
        parts.push(part);
    }
    parts
}

/// A cell that goes on in the rows below.
#[derive(Clone, Default)]
struct SpanningCell {
    rows_left: usize,
    content: String,
}

/// Gives all rows of a table equally many cells.
fn even_rows(document: &Document, table: &NodeRef<'_>, left: &mut usize) {
    let rows: Vec<NodeRef<'_>> =
        table.descendants_it().filter(|it| it.is_element() && it.has_name("tr")).collect();
    let mut spanning: Vec<SpanningCell> = Vec::new();
    let mut widths = Vec::with_capacity(rows.len());
    for row in &rows {
        let cells: Vec<NodeRef<'_>> = row.children_it(false).filter(|it| it.is("td, th")).collect();
        let mut column = 0;
        for cell in &cells {
            while let Some(content) = take_spanning(&mut spanning, column) {
                let Some(added) = new_cell(document, &content, left) else { return };
                cell.insert_before(&added);
                column += 1;
            }
            let (across, down) = (span(cell, "colspan"), span(cell, "rowspan"));
            let content = if down > 1 { cell.inner_html().to_string() } else { String::new() };
            let mut last = *cell;
            for at in column..(column + across).min(MAX_COLUMNS) {
                if at > column {
                    let Some(added) = new_cell(document, "", left) else { return };
                    last.insert_after(&added);
                    last = added;
                }
                if down > 1 {
                    spanning.resize(spanning.len().max(at + 1), SpanningCell::default());
                    let content = if at == column { content.clone() } else { String::new() };
                    spanning[at] = SpanningCell { rows_left: down - 1, content };
                }
            }
            column += across;
        }
        while let Some(content) = take_spanning(&mut spanning, column) {
            let Some(added) = new_cell(document, &content, left) else { return };
            row.append_child(&added);
            column += 1;
        }
        widths.push(column);
    }
    let widest = widths.iter().copied().max().unwrap_or_default().min(MAX_COLUMNS);
    for (row, width) in rows.iter().zip(widths).filter(|(_, width)| *width > 0) {
        for _ in width..widest {
            let Some(added) = new_cell(document, "", left) else { return };
            row.append_child(&added);
        }
    }
}

/// Returns the content of the cell above that goes on in this column.
fn take_spanning(spanning: &mut [SpanningCell], column: usize) -> Option<String> {
    let cell = spanning.get_mut(column).filter(|cell| cell.rows_left > 0)?;
    cell.rows_left -= 1;
    Some(cell.content.clone())
}

/// Creates a cell; `None` once there are enough.
fn new_cell<'d>(document: &'d Document, content: &str, left: &mut usize) -> Option<NodeRef<'d>> {
    *left = left.checked_sub(1)?;
    let cell = document.tree.new_element("td");
    cell.set_html(content);
    Some(cell)
}

fn span(cell: &NodeRef<'_>, name: &str) -> usize {
    let written = cell.attr(name).and_then(|span| span.trim().parse::<usize>().ok());
    written.unwrap_or(1).clamp(1, 1_000)
}
