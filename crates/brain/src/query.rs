//! A query that was read, and in which everything that has no bound of its own has got one.
//!
//! The text is judged by its [`crate::shape`], parsed, and walked once. On the way, what is not answered is refused, and what could grow
//! without the [`crate::meter`] seeing it is replaced:
//!
//! - `NOW()` by the time that was given;
//! - `CONCAT`, `REPLACE` and `GROUP_CONCAT` by ours, which refuse to make a text that is too long;
//! - solutions in which nothing needs to be bound (of an inner SELECT, of VALUES, of UNION) get one more variable that is, so that no
//!   solution is made without a term being copied, which the meter counts.

use crate::bounds::{MAX_COMPILED, MAX_PATTERN, MAX_PATTERNS, MAX_VARIABLES};
use crate::error::Error;
use crate::shape;
use crate::vocabulary::OAP;
use oxrdf::{Literal, NamedNode, Variable};
use regex::{Regex, RegexBuilder};
use spargebra::algebra::{
    AggregateExpression, AggregateFunction, Expression, Function, GraphPattern, OrderExpression,
};
use spargebra::term::{GroundTerm, NamedNodePattern, TermPattern, TriplePattern};
use spargebra::{Query, SparqlParser};
use std::collections::HashSet;

/// Names of prefixes that a query need not declare.
const PREFIXES: [(&str, &str); 6] = [
    ("brain", crate::vocabulary::BRAIN),
    ("prov", crate::vocabulary::PROV),
    ("oap", OAP),
    ("rel", crate::vocabulary::RELATION),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("xsd", XSD),
];
const XSD: &str = "http://www.w3.org/2001/XMLSchema#";
/// The casts of SPARQL 1.1 (section 17.5), which take one value each.
const CASTS: [&str; 7] = ["boolean", "dateTime", "decimal", "double", "float", "integer", "string"];
/// Longest message of the parser that is handed on, in characters. It says where something is wrong and what could stand there, and quotes
/// nothing of the query.
const MAX_MESSAGE: usize = 300;

/// What a query answers with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Solutions, of a SELECT.
    Solutions,
    /// Yes or no, of an ASK.
    Boolean,
    /// Triples, of a CONSTRUCT or DESCRIBE.
    Triples,
}

/// A query that may be evaluated.
#[derive(Debug, Clone)]
pub struct Asked {
    pub(crate) query: Query,
    /// The patterns of REPLACE; the function's name has its number.
    pub(crate) replaced: Vec<Regex>,
    /// The separators of GROUP_CONCAT, likewise.
    pub(crate) separators: Vec<String>,
    /// How many variables a solution may have.
    pub(crate) width: usize,
}

impl Asked {
    /// Reads a query. `now` is what `NOW()` says, RFC 3339.
    ///
    /// # Errors
    ///
    /// What [`Error`] says of queries; nothing of it depends on what is remembered.
    pub fn read(query: &str, now: &str) -> Result<Self, Error> {
        Self::parsed(query, now, SparqlParser::new())
    }

    /// The same, whose relative IRIs are of this address unless the query has a BASE of its own (SPARQL 1.1, section 4.1.1.2).
    ///
    /// # Errors
    ///
    /// As [`Asked::read`]; [`Error::NoIri`], where the address is none.
    pub fn read_at(base: &str, query: &str, now: &str) -> Result<Self, Error> {
        Self::parsed(query, now, SparqlParser::new().with_base_iri(base).map_err(|_| Error::NoIri)?)
    }

    fn parsed(query: &str, now: &str, mut parser: SparqlParser) -> Result<Self, Error> {
        shape::check(query)?;
        for (name, iri) in PREFIXES {
            parser = parser.with_prefix(name, iri).map_err(|e| Error::Syntax(e.to_string()))?;
        }
        let parsed = parser.clone().parse_query(query);
        let mut parsed = parsed.map_err(|e| match parser.clone().parse_update(query) {
            Ok(_) if !query.trim().is_empty() => Error::Update,
            _ => Error::Syntax(
                crate::syntax::told(parser, query, &e.to_string()).chars().take(MAX_MESSAGE).collect(),
            ),
        })?;
        let now = Literal::new_typed_literal(now, oxrdf::vocab::xsd::DATE_TIME);
        let mut bounding = Bounding {
            now,
            variables: HashSet::new(),
            patterns: 0,
            fresh: 0,
            replaced: Vec::new(),
            separators: Vec::new(),
        };
        match &mut parsed {
            Query::Select { pattern, .. } | Query::Describe { pattern, .. } | Query::Ask { pattern, .. } => {
                bounding.pattern(pattern, true)?;
            }
            Query::Construct { pattern, .. } => bounding.pattern(pattern, true)?,
        }
        if bounding.variables.len() > MAX_VARIABLES {
            return Err(Error::ManyVariables);
        }
        let width = bounding.variables.len() + bounding.fresh;
        Ok(Self { query: parsed, replaced: bounding.replaced, separators: bounding.separators, width })
    }

    /// What it answers with.
    pub const fn form(&self) -> Form {
        match self.query {
            Query::Select { .. } => Form::Solutions,
            Query::Ask { .. } => Form::Boolean,
            Query::Construct { .. } | Query::Describe { .. } => Form::Triples,
        }
    }

    /// That nothing would have to be fetched for its FROM and FROM NAMED. What is known by an address is asked for without FROM, so that
    /// nobody thinks that it was fetched.
    ///
    /// # Errors
    ///
    /// [`Error::Fetch`].
    pub fn fetches_nothing(&self) -> Result<(), Error> {
        let (default, named) = self.from().unwrap_or_default();
        let fetched = |name: &&NamedNode| !name.as_str().starts_with("urn:oap:");
        match default.iter().chain(named).find(fetched) {
            Some(name) => Err(Error::Fetch(name.as_str().to_owned())),
            None => Ok(()),
        }
    }

    /// The graphs of its FROM and FROM NAMED, where it has any.
    pub(crate) fn from(&self) -> Option<(&[NamedNode], &[NamedNode])> {
        let dataset = self.query.dataset()?;
        Some((&dataset.default, dataset.named.as_deref().unwrap_or_default()))
    }
}

/// Whether a function is one of the casts.
fn is_cast(function: &NamedNode) -> bool {
    function.as_str().strip_prefix(XSD).is_some_and(|name| CASTS.contains(&name))
}

/// The name of our own REPLACE with the pattern of this number.
pub(crate) fn replacing(number: usize) -> NamedNode {
    NamedNode::new_unchecked(format!("urn:oap:brain:replace:{number}"))
}

/// The name of our own GROUP_CONCAT with the separator of this number.
pub(crate) fn concatenating(number: usize) -> NamedNode {
    NamedNode::new_unchecked(format!("urn:oap:brain:group-concat:{number}"))
}

/// The name of our own CONCAT.
pub(crate) fn concat() -> NamedNode {
    NamedNode::new_unchecked("urn:oap:brain:concat")
}

/// One walk through a query.
struct Bounding {
    now: Literal,
    variables: HashSet<String>,
    patterns: usize,
    fresh: usize,
    replaced: Vec<Regex>,
    separators: Vec<String>,
}

impl Bounding {
    /// A variable that no query can have, for its name has spaces.
    fn fresh(&mut self) -> Variable {
        self.fresh += 1;
        Variable::new_unchecked(format!("oap brain {}", self.fresh))
    }

    /// Binds one more variable in each solution of a pattern.
    fn bind(&mut self, pattern: &mut GraphPattern) -> Variable {
        let variable = self.fresh();
        let inner = Box::new(std::mem::take(pattern));
        let expression = Expression::Literal(Literal::from(true));
        *pattern = GraphPattern::Extend { inner, variable: variable.clone(), expression };
        variable
    }

    /// `outer`: its solutions are the answer's, unless a projection stands between.
    fn pattern(&mut self, pattern: &mut GraphPattern, outer: bool) -> Result<(), Error> {
        match pattern {
            GraphPattern::Bgp { patterns } => {
                self.joined(patterns.len())?;
                patterns.iter().for_each(|triple| self.triple(triple));
            }
            GraphPattern::Path { subject, object, .. } => {
                self.joined(1)?;
                self.term(subject);
                self.term(object);
            }
            GraphPattern::Join { left, right }
            | GraphPattern::Lateral { left, right }
            | GraphPattern::Minus { left, right } => {
                self.pattern(left, false)?;
                self.pattern(right, false)?;
            }
            GraphPattern::Union { .. } => {
                self.union(pattern)?;
                self.bind(pattern);
            }
            GraphPattern::LeftJoin { left, right, expression } => {
                self.pattern(left, false)?;
                self.pattern(right, false)?;
                expression.iter_mut().try_for_each(|expression| self.expression(expression))?;
            }
            GraphPattern::Filter { expr, inner } => {
                self.expression(expr)?;
                self.pattern(inner, outer)?;
            }
            GraphPattern::Graph { name, inner } => {
                self.name(name);
                self.pattern(inner, false)?;
            }
            GraphPattern::Extend { inner, variable, expression } => {
                self.variable(variable);
                self.expression(expression)?;
                self.pattern(inner, outer)?;
            }
            GraphPattern::Values { variables, bindings } => {
                self.joined(1)?;
                variables.iter().for_each(|variable| self.variable(variable));
                variables.push(self.fresh());
                bindings.iter_mut().for_each(|row| row.push(Some(GroundTerm::Literal(Literal::from(true)))));
            }
            GraphPattern::OrderBy { inner, expression } => {
                for OrderExpression::Asc(by) | OrderExpression::Desc(by) in expression {
                    self.expression(by)?;
                }
                self.pattern(inner, outer)?;
            }
            GraphPattern::Project { inner, variables } => {
                variables.iter().for_each(|variable| self.variable(variable));
                self.pattern(inner, false)?;
                if !outer {
                    variables.push(self.bind(inner));
                }
            }
            GraphPattern::Distinct { inner } | GraphPattern::Reduced { inner } => {
                self.pattern(inner, outer)?
            }
            GraphPattern::Slice { inner, .. } => self.pattern(inner, outer)?,
            GraphPattern::Group { inner, variables, aggregates } => {
                variables.iter().for_each(|variable| self.variable(variable));
                for (variable, aggregate) in aggregates {
                    self.variable(variable);
                    self.aggregate(aggregate)?;
                }
                self.pattern(inner, false)?;
            }
            GraphPattern::Service { .. } => return Err(Error::Service),
        }
        Ok(())
    }

    /// Counts what is joined.
    fn joined(&mut self, patterns: usize) -> Result<(), Error> {
        self.patterns += patterns;
        if self.patterns > MAX_PATTERNS { Err(Error::ManyPatterns) } else { Ok(()) }
    }

    /// The branches of a UNION of any length, which is one variable more for all.
    fn union(&mut self, pattern: &mut GraphPattern) -> Result<(), Error> {
        match pattern {
            GraphPattern::Union { left, right } => {
                self.union(left)?;
                self.union(right)
            }
            branch => self.pattern(branch, false),
        }
    }

    fn aggregate(&mut self, aggregate: &mut AggregateExpression) -> Result<(), Error> {
        let AggregateExpression::FunctionCall { name, expr, .. } = aggregate else { return Ok(()) };
        if let AggregateFunction::GroupConcat { separator } = name {
            self.separators.push(separator.take().unwrap_or_else(|| " ".to_owned()));
            *name = AggregateFunction::Custom(concatenating(self.separators.len() - 1));
        }
        self.expression(expr)
    }

    fn expression(&mut self, expression: &mut Expression) -> Result<(), Error> {
        match expression {
            Expression::NamedNode(_) | Expression::Literal(_) => {}
            Expression::Variable(variable) | Expression::Bound(variable) => self.variable(variable),
            Expression::Or(a, b)
            | Expression::And(a, b)
            | Expression::Equal(a, b)
            | Expression::SameTerm(a, b)
            | Expression::Greater(a, b)
            | Expression::GreaterOrEqual(a, b)
            | Expression::Less(a, b)
            | Expression::LessOrEqual(a, b)
            | Expression::Add(a, b)
            | Expression::Subtract(a, b)
            | Expression::Multiply(a, b)
            | Expression::Divide(a, b) => {
                self.expression(a)?;
                self.expression(b)?;
            }
            Expression::UnaryPlus(a) | Expression::UnaryMinus(a) | Expression::Not(a) => {
                self.expression(a)?
            }
            Expression::In(a, list) => {
                self.expression(a)?;
                list.iter_mut().try_for_each(|one| self.expression(one))?;
            }
            Expression::Exists(pattern) => self.pattern(pattern, false)?,
            Expression::If(a, b, c) => {
                self.expression(a)?;
                self.expression(b)?;
                self.expression(c)?;
            }
            Expression::Coalesce(list) => list.iter_mut().try_for_each(|one| self.expression(one))?,
            Expression::FunctionCall(function, arguments) => {
                arguments.iter_mut().try_for_each(|argument| self.expression(argument))?;
                if let Some(instead) = self.call(function, arguments)? {
                    *expression = instead;
                }
            }
        }
        Ok(())
    }

    /// What stands instead of a call, where something does.
    fn call(
        &mut self,
        function: &mut Function,
        arguments: &mut Vec<Expression>,
    ) -> Result<Option<Expression>, Error> {
        match function {
            Function::Now => return Ok(Some(Expression::Literal(self.now.clone()))),
            Function::Rand | Function::Uuid | Function::StrUuid => return Err(Error::Chance),
            Function::Concat => *function = Function::Custom(concat()),
            Function::Regex => {
                pattern(arguments.get(1), arguments.get(2))?;
            }
            Function::Replace => {
                self.replaced.push(pattern(arguments.get(1), arguments.get(3))?);
                *function = Function::Custom(replacing(self.replaced.len() - 1));
                // The text and what takes the place; the pattern is the function's own.
                arguments.truncate(3);
                if arguments.len() == 3 {
                    arguments.remove(1);
                }
            }
            Function::Custom(name) if arguments.len() != 1 || !is_cast(name) => {
                return Err(Error::Function(name.as_str().to_owned()));
            }
            _ => {}
        }
        Ok(None)
    }

    fn triple(&mut self, triple: &TriplePattern) {
        self.term(&triple.subject);
        self.name(&triple.predicate);
        self.term(&triple.object);
    }

    fn term(&mut self, term: &TermPattern) {
        match term {
            TermPattern::Variable(variable) => self.variable(variable),
            // The evaluator has a variable for it.
            TermPattern::BlankNode(node) => drop(self.variables.insert(node.to_string())),
            TermPattern::NamedNode(_) | TermPattern::Literal(_) => {}
        }
    }

    fn name(&mut self, name: &NamedNodePattern) {
        if let NamedNodePattern::Variable(variable) = name {
            self.variable(variable);
        }
    }

    fn variable(&mut self, variable: &Variable) {
        self.variables.insert(variable.as_str().to_owned());
    }
}

/// The pattern of a REGEX or REPLACE, compiled as the evaluator compiles it, within our bounds.
fn pattern(pattern: Option<&Expression>, flags: Option<&Expression>) -> Result<Regex, Error> {
    let written = |expression: Option<&Expression>| match expression {
        Some(Expression::Literal(literal)) => Ok(literal.value().to_owned()),
        None => Ok(String::new()),
        Some(_) => Err(Error::ComputedPattern),
    };
    let (mut pattern, flags) = (written(pattern)?, written(flags)?);
    if pattern.len() > MAX_PATTERN {
        return Err(Error::Pattern);
    }
    if flags.contains('q') {
        pattern = regex::escape(&pattern);
    }
    let mut builder = RegexBuilder::new(&pattern);
    builder.size_limit(MAX_COMPILED);
    for flag in flags.chars() {
        match flag {
            's' => builder.dot_matches_new_line(true),
            'm' => builder.multi_line(true),
            'i' => builder.case_insensitive(true),
            'x' => builder.ignore_whitespace(true),
            'q' => &mut builder,
            _ => return Err(Error::Pattern),
        };
    }
    builder.build().map_err(|_| Error::Pattern)
}
