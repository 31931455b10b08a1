//! `oap-mutator ROOT EXCLUDED FILE...`: rewrites the files under a root, so that each mutant is behind `oap_identity::mutant(NUMBER)`, but for the
//! numbers in EXCLUDED (a file, one a line). Prints the mutants, one JSON object a line. `mutants.py` beside it builds and runs them.
//!
//! What is put in: comparisons turned round and moved by one, `&&` and `||` exchanged, `+` and `-` exchanged, `!` taken away, `any` and `all` (and the
//! like) exchanged, conditions of `if` and of arms made true and false, arms taken away where there is `_`, functions that return at once.

use proc_macro2::Span;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Expr, ReturnType, Type};

/// Alternatives of one place of a text.
#[derive(Default)]
struct Place {
    /// What may stand there instead, by the mutant's number.
    instead: Vec<(u32, String)>,
}

/// The methods that have another of the same shape.
const TWINS: [(&str, &str); 12] = [
    ("any", "all"),
    ("all", "any"),
    ("is_some", "is_none"),
    ("is_none", "is_some"),
    ("is_ok", "is_err"),
    ("is_err", "is_ok"),
    ("is_some_and", "is_none_or"),
    ("is_none_or", "is_some_and"),
    ("min", "max"),
    ("max", "min"),
    ("saturating_sub", "saturating_add"),
    ("saturating_add", "saturating_sub"),
];

struct Mutator<'a> {
    text: &'a str,
    file: &'a str,
    next: &'a mut u32,
    excluded: &'a BTreeSet<u32>,
    functions: Vec<String>,
    places: BTreeMap<(usize, std::cmp::Reverse<usize>), Place>,
    /// Texts that are put in at a place of no length.
    inserted: BTreeMap<usize, Vec<(u32, String)>>,
    told: Vec<serde_json::Value>,
}

fn range(span: Span) -> Range<usize> {
    span.byte_range()
}

/// Whether an expression has a `let` that others see.
fn binds(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => binds(&binary.left) || binds(&binary.right),
        Expr::Paren(paren) => binds(&paren.expr),
        _ => false,
    }
}

impl Mutator<'_> {
    fn slice(&self, span: Span) -> &str {
        &self.text[range(span)]
    }

    fn number(&mut self, span: Span, kind: &str, becomes: &str) -> Option<u32> {
        *self.next += 1;
        let number = *self.next;
        if self.excluded.contains(&number) {
            return None;
        }
        let was: String = self.slice(span).split_whitespace().collect::<Vec<_>>().join(" ");
        self.told.push(json!({
            "number": number, "file": self.file, "line": span.start().line, "function": self.functions.join("::"), "kind": kind,
            "was": was.chars().take(160).collect::<String>(), "becomes": becomes.chars().take(160).collect::<String>(),
        }));
        Some(number)
    }

    fn instead(&mut self, span: Span, kind: &str, becomes: String) {
        let at = range(span);
        if let Some(number) = self.number(span, kind, &becomes) {
            let place = self.places.entry((at.start, std::cmp::Reverse(at.end))).or_default();
            place.instead.push((number, becomes));
        }
    }

    fn insert(&mut self, at: usize, span: Span, kind: &str, becomes: &str, text: impl Fn(u32) -> String) {
        if let Some(number) = self.number(span, kind, becomes) {
            self.inserted.entry(at).or_default().push((number, text(number)));
        }
    }

    fn function(&mut self, signature: &syn::Signature, block: &syn::Block) {
        let open = range(block.brace_token.span.open()).end;
        let values: Vec<String> = match &signature.output {
            ReturnType::Default => vec!["()".to_owned()],
            ReturnType::Type(_, of) => values(of),
        };
        // Where the body is that value already, or a single place that others mutate.
        let body = self.text[open..range(block.brace_token.span.close()).start].trim().to_owned();
        for value in values.into_iter().filter(|value| *value != body) {
            self.insert(open, signature.ident.span(), "returns", &value, |number| {
                format!(" if oap_identity::mutant({number}) {{ return {value}; }} ")
            });
        }
    }

    /// The text with every mutant behind its switch.
    fn rendered(&self, within: Range<usize>, skip: Option<(usize, std::cmp::Reverse<usize>)>) -> String {
        let mut out = String::new();
        let mut at = within.start;
        let inner = self.places.range((within.start, std::cmp::Reverse(usize::MAX))..);
        for (key, place) in inner {
            let (start, std::cmp::Reverse(end)) = *key;
            if start >= within.end {
                break;
            }
            // What is around this, or was done.
            if start < at || end > within.end || skip.is_some_and(|skip| *key <= skip) {
                continue;
            }
            self.plain(at..start, &mut out);
            let mut text = self.rendered(start..end, Some(*key));
            for (number, becomes) in place.instead.iter().rev() {
                text = format!("if oap_identity::mutant({number}) {{ {becomes} }} else {{ {text} }}");
            }
            if place.instead.is_empty() { out.push_str(&text) } else { out.push_str(&format!("({text})")) }
            at = end;
        }
        self.plain(at..within.end, &mut out);
        out
    }

    fn plain(&self, within: Range<usize>, out: &mut String) {
        let mut at = within.start;
        for (place, texts) in self.inserted.range(within.clone()) {
            out.push_str(&self.text[at..*place]);
            texts.iter().for_each(|(_, text)| out.push_str(text));
            at = *place;
        }
        out.push_str(&self.text[at..within.end]);
    }
}

/// What a function of a type may return at once.
fn values(of: &Type) -> Vec<String> {
    let texts = |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect();
    let Type::Path(path) = of else {
        return match of {
            Type::Tuple(tuple) if tuple.elems.is_empty() => texts(&["()"]),
            _ => Vec::new(),
        };
    };
    let Some(last) = path.path.segments.last() else { return Vec::new() };
    let argument = || match &last.arguments {
        syn::PathArguments::AngleBracketed(all) => all.args.iter().find_map(|argument| match argument {
            syn::GenericArgument::Type(of) => Some(of.clone()),
            _ => None,
        }),
        _ => None,
    };
    match last.ident.to_string().as_str() {
        "bool" => texts(&["true", "false"]),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" | "i32" => texts(&["0", "1"]),
        "String" => texts(&["String::new()"]),
        "Vec" | "BTreeSet" | "BTreeMap" | "Map" => texts(&["Default::default()"]),
        "Option" => texts(&["None"]),
        "Result" => match argument() {
            Some(of) => values(&of).into_iter().map(|value| format!("Ok({value})")).collect(),
            None => Vec::new(),
        },
        _ => Vec::new(),
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("test")
            || (attribute.path().is_ident("cfg") && attribute.meta.require_list().is_ok_and(|list| list.tokens.to_string() == "test"))
    })
}

impl<'ast> Visit<'ast> for Mutator<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_test(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }

    // Nothing there can ask which mutant is on.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_expr_repeat(&mut self, _: &'ast syn::ExprRepeat) {}

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        // What is printed decides nothing.
        let of = item.trait_.as_ref().and_then(|(_, path, _)| path.segments.last()).map(|last| last.ident.to_string());
        if matches!(of.as_deref(), Some("Display" | "Debug")) {
            return;
        }
        self.functions.push(self.slice(item.self_ty.span()).to_owned());
        visit::visit_item_impl(self, item);
        self.functions.pop();
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if is_test(&item.attrs) || item.sig.constness.is_some() {
            return;
        }
        self.functions.push(item.sig.ident.to_string());
        self.function(&item.sig, &item.block);
        visit::visit_item_fn(self, item);
        self.functions.pop();
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_some() {
            return;
        }
        self.functions.push(item.sig.ident.to_string());
        self.function(&item.sig, &item.block);
        visit::visit_impl_item_fn(self, item);
        self.functions.pop();
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        let others: &[&str] = match expr.op {
            BinOp::Eq(_) => &["!="],
            BinOp::Ne(_) => &["=="],
            BinOp::Lt(_) => &["<=", ">="],
            BinOp::Le(_) => &["<", ">"],
            BinOp::Gt(_) => &[">=", "<="],
            BinOp::Ge(_) => &[">", "<"],
            BinOp::And(_) if !binds(&expr.left) && !binds(&expr.right) => &["||"],
            BinOp::Or(_) => &["&&"],
            BinOp::Add(_) => &["-"],
            BinOp::Sub(_) => &["+"],
            _ => &[],
        };
        for other in others {
            let (left, right) = (self.slice(expr.left.span()), self.slice(expr.right.span()));
            let becomes = format!("({left}) {other} ({right})");
            self.instead(expr.span(), "operator", becomes);
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        if matches!(expr.op, syn::UnOp::Not(_)) {
            let becomes = self.slice(expr.expr.span()).to_owned();
            self.instead(expr.span(), "not", becomes);
        }
        visit::visit_expr_unary(self, expr);
    }

    fn visit_expr_method_call(&mut self, expr: &'ast syn::ExprMethodCall) {
        let name = expr.method.to_string();
        if let Some((_, twin)) = TWINS.iter().find(|(known, _)| *known == name) {
            let (at, method) = (range(expr.span()), range(expr.method.span()));
            let becomes = format!("{}{twin}{}", &self.text[at.start..method.start], &self.text[method.end..at.end]);
            self.instead(expr.span(), "twin", becomes);
        }
        visit::visit_expr_method_call(self, expr);
    }

    fn visit_expr_if(&mut self, expr: &'ast syn::ExprIf) {
        // Comparisons and negations are turned round by themselves.
        if !binds(&expr.cond) && !matches!(*expr.cond, Expr::Binary(_) | Expr::Unary(_)) {
            for value in ["true", "false"] {
                self.instead(expr.cond.span(), "condition", value.to_owned());
            }
        }
        visit::visit_expr_if(self, expr);
    }

    fn visit_expr_match(&mut self, expr: &'ast syn::ExprMatch) {
        let whole = |arm: &&syn::Arm| matches!(arm.pat, syn::Pat::Wild(_)) && arm.guard.is_none();
        let has_rest = expr.arms.iter().any(|arm| whole(&arm));
        for arm in &expr.arms {
            match &arm.guard {
                Some((_, guard)) if !binds(guard) => {
                    for value in ["true", "false"] {
                        self.instead(guard.span(), "guard", value.to_owned());
                    }
                }
                None if has_rest && !whole(&arm) => {
                    let at = range(arm.pat.span()).end;
                    self.insert(at, arm.pat.span(), "arm", "taken away", |number| {
                        format!(" if !oap_identity::mutant({number}) ")
                    });
                }
                _ => {}
            }
        }
        visit::visit_expr_match(self, expr);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(root), Some(excluded)) = (arguments.next(), arguments.next()) else {
        return Err("oap-mutator ROOT EXCLUDED FILE...".into());
    };
    let excluded = std::fs::read_to_string(excluded).unwrap_or_default();
    let excluded: BTreeSet<u32> = excluded.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let mut next = 0;
    for file in arguments {
        let path = format!("{root}/{file}");
        let text = std::fs::read_to_string(&path)?;
        let parsed = syn::parse_file(&text)?;
        let mut mutator = Mutator {
            text: &text,
            file: &file,
            next: &mut next,
            excluded: &excluded,
            functions: Vec::new(),
            places: BTreeMap::new(),
            inserted: BTreeMap::new(),
            told: Vec::new(),
        };
        mutator.visit_file(&parsed);
        mutator.told.iter().for_each(|mutant| println!("{mutant}"));
        std::fs::write(&path, mutator.rendered(0..text.len(), None))?;
    }
    Ok(())
}
