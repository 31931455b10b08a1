//! What the compiler refuses, each beside the same with the proof that is asked for: one line differs. The names of the errors
//! are checked where `RUSTDOC` is `.ci/rustdoc`, the lines that compile by any.

/// A view of a grant that was verified.
/// ```
/// # use oap_exchange::{Allowance, Setting, View, ViewError};
/// # use std::convert::Infallible;
/// # use oap_memory::commitment::Committed;
/// # type Built = Result<View, ViewError<Infallible>>;
/// use oap_grants::VerifiedGrant as Given;
/// fn view(grant: &Given, room: &Allowance, setting: &Setting) -> Built {
///     View::build(grant, room, setting, std::iter::empty(), |_| Ok(None::<Committed>))
/// }
/// ```
/// Of one that was not:
/// ```compile_fail,E0308
/// # use oap_exchange::{Allowance, Setting, View, ViewError};
/// # use std::convert::Infallible;
/// # use oap_memory::commitment::Committed;
/// # type Built = Result<View, ViewError<Infallible>>;
/// use oap_grants::Grant as Given;
/// fn view(grant: &Given, room: &Allowance, setting: &Setting) -> Built {
///     View::build(grant, room, setting, std::iter::empty(), |_| Ok(None::<Committed>))
/// }
/// ```
/// Of a signed one that nobody presented:
/// ```compile_fail,E0308
/// # use oap_exchange::{Allowance, Setting, View, ViewError};
/// # use std::convert::Infallible;
/// # use oap_memory::commitment::Committed;
/// # type Built = Result<View, ViewError<Infallible>>;
/// use oap_grants::SignedGrant as Given;
/// fn view(grant: &Given, room: &Allowance, setting: &Setting) -> Built {
///     View::build(grant, room, setting, std::iter::empty(), |_| Ok(None::<Committed>))
/// }
/// ```
struct AView;

/// What a query finds in a view.
/// ```
/// # use oap_exchange::{Allowance, Found, Query, answer::find};
/// use oap_exchange::View as From;
/// fn ask(from: &From, room: &Allowance, query: &Query) -> Found {
///     find(from, room, query, None, None)
/// }
/// ```
/// In a preview:
/// ```compile_fail,E0308
/// # use oap_exchange::{Allowance, Found, Query, answer::find};
/// use oap_exchange::Preview as From;
/// fn ask(from: &From, room: &Allowance, query: &Query) -> Found {
///     find(from, room, query, None, None)
/// }
/// ```
struct WhatIsFound;

/// An answer of what was found.
/// ```
/// # use oap_exchange::{Answer, WrittenItems, respond::{Frame, Items, Unsent}};
/// # use std::convert::Infallible;
/// use oap_exchange::Found as Of;
/// fn write(of: Of, kept: &WrittenItems) -> Option<Answer> {
///     of.load(kept, |_| Ok::<_, Infallible>(None)).ok()?
/// }
/// fn name(answer: Answer, frame: Frame) -> Unsent<Items> {
///     answer.write(frame)
/// }
/// ```
/// Before it is written out:
/// ```compile_fail,E0599
/// # use oap_exchange::respond::{Frame, Items, Unsent};
/// use oap_exchange::Found as Of;
/// fn name(answer: Of, frame: Frame) -> Unsent<Items> {
///     answer.write(frame)
/// }
/// ```
/// An item that was written out for somebody is reached through the views that hold it:
/// ```compile_fail,E0624
/// # use oap_exchange::{Version, WrittenItems};
/// # use oap_identity::Hash;
/// fn look(kept: &WrittenItems, whose: Hash, version: Version) {
///     drop(kept.get(whose, version, || Ok::<_, ()>(None)));
/// }
/// ```
struct AnAnswer;

/// A bundle and a vector of a view.
/// ```
/// # use oap_exchange::{Allowance, bundle::{bundle, select}, respond::vector};
/// # use oap_identity::{BundleId, ItemId, Timestamp};
/// # use std::convert::Infallible;
/// use oap_exchange::View as From;
/// fn export(from: &From, room: &Allowance, id: BundleId, now: Timestamp) {
///     drop(bundle(select(from, room), id, Vec::new(), now, |_| Ok::<_, Infallible>(None)));
/// }
/// fn embedding(from: &From, room: &Allowance, item: ItemId) {
///     drop(vector(from, room, item));
/// }
/// ```
/// A bundle of a preview:
/// ```compile_fail,E0308
/// # use oap_exchange::{Allowance, bundle::{bundle, select}};
/// # use oap_identity::{BundleId, Timestamp};
/// # use std::convert::Infallible;
/// use oap_exchange::Preview as From;
/// fn export(from: &From, room: &Allowance, id: BundleId, now: Timestamp) {
///     drop(bundle(select(from, room), id, Vec::new(), now, |_| Ok::<_, Infallible>(None)));
/// }
/// ```
/// A vector of a preview:
/// ```compile_fail,E0308
/// # use oap_exchange::{Allowance, respond::vector};
/// # use oap_identity::ItemId;
/// use oap_exchange::Preview as From;
/// fn embedding(from: &From, room: &Allowance, item: ItemId) {
///     drop(vector(from, room, item));
/// }
/// ```
struct OtherAnswers;

/// An answer with a receipt that is durable.
/// ```
/// # use oap_exchange::respond::{Durable, Items, RespondError, Unsent, respond};
/// # use oap_identity::Signer;
/// # use oap_memory::Receipt;
/// fn leave(answer: Unsent<Items>, receipt: &impl Durable, signer: &Signer) -> Result<Vec<u8>, RespondError> {
///     let told: &Receipt = receipt.receipt();
///     respond(answer, receipt, signer)
/// }
/// ```
/// With any receipt:
/// ```compile_fail,E0277
/// # use oap_exchange::respond::{Durable, Items, RespondError, Unsent, respond};
/// # use oap_identity::Signer;
/// # use oap_memory::Receipt;
/// fn leave(answer: Unsent<Items>, receipt: &Receipt, signer: &Signer) -> Result<Vec<u8>, RespondError> {
///     respond(answer, receipt, signer)
/// }
/// ```
/// Before it is written out under its name:
/// ```compile_fail,E0308
/// # use oap_exchange::{Answer, respond::{Durable, Items, RespondError, Unsent, respond}};
/// # use oap_identity::Signer;
/// fn leave(answer: Answer, receipt: &impl Durable, signer: &Signer) -> Result<Vec<u8>, RespondError> {
///     respond(answer, receipt, signer)
/// }
/// ```
/// A type of one's own can say that its receipt is durable:
/// ```
/// # use oap_memory::Receipt;
/// struct Kept(Receipt);
/// impl oap_exchange::Durable for Kept {
///     fn receipt(&self) -> &Receipt {
///         &self.0
///     }
/// }
/// ```
/// Nobody but this room can say it of every receipt, whatever became of it:
/// ```compile_fail,E0117
/// # use oap_memory::Receipt;
/// impl oap_exchange::Durable for Receipt {
///     fn receipt(&self) -> &Receipt {
///         self
///     }
/// }
/// ```
/// Nobody makes an answer of anything else:
/// ```
/// # use oap_exchange::respond::Unsent;
/// # use oap_identity::Hash;
/// fn hash(unsent: &Unsent<&str>) -> Hash {
///     unsent.output_hash()
/// }
/// ```
/// ```compile_fail,E0451
/// # use oap_exchange::respond::Unsent;
/// # use oap_identity::Hash;
/// let unsent = Unsent { body: "anything", shown: Vec::new(), output_hash: Hash::of(b"") };
/// ```
struct WhatLeaves;

/// What is in a view is reached through its answers.
/// ```
/// # use oap_exchange::{View, Preview};
/// fn count(view: &View, preview: &Preview) -> usize {
///     view.len() + preview.items().len()
/// }
/// ```
/// ```compile_fail,E0624
/// # use oap_exchange::{View, Preview};
/// fn count(view: &View, preview: &Preview) -> usize {
///     view.slice().len() + preview.items().len()
/// }
/// ```
struct WhatStays;
