//! The symbols of one file: definitions, and the identifiers that refer to names.

use std::fmt;

use crate::language::SourceLanguage;

/// What a definition defines, in one vocabulary for all languages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum SymbolKind {
    /// A class, or a record of Java.
    Class,
    /// A constant.
    Constant,
    /// An enumeration.
    Enum,
    /// A field of a struct or class.
    Field,
    /// A function outside of any type.
    Function,
    /// An interface, or an annotation type of Java.
    Interface,
    /// A macro.
    Macro,
    /// A function of a type, a constructor included.
    Method,
    /// A module or namespace.
    Module,
    /// A struct or union.
    Struct,
    /// A trait.
    Trait,
    /// An alias or another named type.
    Type,
    /// A variable of a module.
    Variable,
    /// A variant of an enumeration.
    Variant,
}

impl SymbolKind {
    /// Every kind, by name.
    pub const ALL: [Self; 14] = [
        Self::Class,
        Self::Constant,
        Self::Enum,
        Self::Field,
        Self::Function,
        Self::Interface,
        Self::Macro,
        Self::Method,
        Self::Module,
        Self::Struct,
        Self::Trait,
        Self::Type,
        Self::Variable,
        Self::Variant,
    ];

    /// Returns the name in lower case, such as `function`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Class => "class",
            Self::Constant => "constant",
            Self::Enum => "enum",
            Self::Field => "field",
            Self::Function => "function",
            Self::Interface => "interface",
            Self::Macro => "macro",
            Self::Method => "method",
            Self::Module => "module",
            Self::Struct => "struct",
            Self::Trait => "trait",
            Self::Type => "type",
            Self::Variable => "variable",
            Self::Variant => "variant",
        }
    }

    /// Returns the kind of a name such as `function`; `None` for other names.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Whether a function directly inside of it is a method.
    pub(crate) fn has_methods(self) -> bool {
        matches!(self, Self::Class | Self::Enum | Self::Interface | Self::Struct | Self::Trait)
    }
}

impl fmt::Display for SymbolKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// One definition in a file. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolDefinition {
    /// The name alone, such as `area`.
    pub name: Box<str>,
    /// What is defined.
    pub kind: SymbolKind,
    /// The names around it, outermost first, such as `shapes::Circle`; empty at the top.
    pub container: Box<str>,
    /// The definition up to its body, on one line, at most 200 characters.
    pub signature: Box<str>,
    /// How many definitions stand around it in the file.
    pub depth: u32,
    /// The line of the name.
    pub line: u32,
    /// The first line of the definition.
    pub first_line: u32,
    /// The last line of the definition.
    pub last_line: u32,
    /// The language, which decides how names are joined.
    pub language: SourceLanguage,
}

impl SymbolDefinition {
    /// Returns the name with its container, such as `Circle::area`.
    #[must_use]
    pub fn qualified_name(&self) -> String {
        match &*self.container {
            "" => self.name.to_string(),
            container => [container, self.language.separator(), &self.name].concat(),
        }
    }
}

/// How an identifier refers to a name, as far as its place tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ReferenceRole {
    /// What is called: a function, a method, a macro, a constructor.
    Call,
    /// A type.
    Type,
    /// Anything else, such as a variable, a path or an import.
    Other,
}

impl ReferenceRole {
    /// Returns the name: `call`, `type` or `other`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Call => "call",
            Self::Type => "type",
            Self::Other => "other",
        }
    }
}

/// An identifier that is not the name in a definition. Its name is [`FileSymbols::name_of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SymbolReference {
    /// How it refers.
    pub role: ReferenceRole,
    /// The line, counting from 1.
    pub line: u32,
    /// The number of bytes before it in its line.
    pub column: u32,
    pub(crate) name: u32,
}

/// The symbols of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileSymbols {
    /// The language of the text.
    pub language: SourceLanguage,
    /// The definitions, in the order of their names in the text.
    pub definitions: Vec<SymbolDefinition>,
    /// The references, in the order of the text.
    pub references: Vec<SymbolReference>,
    /// Whether the parser met syntax that it does not know, so that symbols may be missing.
    pub has_errors: bool,
    pub(crate) names: Vec<Box<str>>,
}

impl FileSymbols {
    /// Returns the name to which a reference of this file refers; empty for one of another file
    /// that has more names.
    #[must_use]
    pub fn name_of(&self, reference: &SymbolReference) -> &str {
        self.names.get(reference.name as usize).map_or("", |name| name)
    }

    /// Returns the references to `name`, in the order of the text.
    pub fn references_to(&self, name: &str) -> impl Iterator<Item = &SymbolReference> {
        let wanted = self.names.iter().position(|known| **known == *name);
        let is_wanted = move |it: &&SymbolReference| Some(it.name as usize) == wanted;
        self.references.iter().filter(is_wanted)
    }

    /// Returns the innermost definition whose lines include `line`.
    #[must_use]
    pub fn enclosing_definition(&self, line: u32) -> Option<&SymbolDefinition> {
        let around =
            self.definitions.iter().filter(|it| (it.first_line..=it.last_line).contains(&line));
        around.min_by_key(|it| (it.last_line - it.first_line, u32::MAX - it.depth))
    }

    /// Returns how often each name is referred to, in the order of first use, without names that are
    /// only defined.
    pub(crate) fn reference_counts(&self) -> impl Iterator<Item = (&str, u32)> {
        let mut counts = vec![0; self.names.len()];
        for reference in &self.references {
            counts[reference.name as usize] += 1;
        }
        self.names.iter().map(|name| &**name).zip(counts).filter(|(_, count)| *count > 0)
    }

    /// Returns about how many bytes of memory it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let text = |it: &SymbolDefinition| it.name.len() + it.container.len() + it.signature.len();
        self.definitions.iter().map(|it| size_of_val(it) + text(it)).sum::<usize>()
            + size_of_val(&*self.references)
            + self.names.iter().map(|name| 16 + name.len()).sum::<usize>()
    }
}
