//! What the compiler refuses, beside the same with the proof that is asked for (`oap-exchange` has those of its own room). Two are
//! refused for how long something lives, which has no code; the codes of the others are checked where `RUSTDOC` is `.ci/rustdoc`.

/// A receipt that was appended and is durable, and an answer that leaves with it.
/// ```
/// # use oap_exchange::respond::{Items, Unsent, respond};
/// # use oap_gateway::{Error, Gateway, state::commits::{Draft, Stored}};
/// # use oap_identity::Signer;
/// # use oap_memory::Receipt;
/// # use std::sync::Arc;
/// async fn keep(gateway: Arc<Gateway>, draft: Draft) -> Result<Stored<Receipt>, Error> {
///     Ok(gateway.record(move |w| Ok((w.receipt("personal", draft)?, ()))).await?.0)
/// }
/// async fn leave(
///     gateway: Arc<Gateway>, draft: Draft, answer: Unsent<Items>, signer: &Signer,
/// ) -> Result<Vec<u8>, Error> {
///     let (receipt, ()) = gateway.record(move |w| Ok((w.receipt("personal", draft)?, ()))).await?;
///     Ok(respond(answer, &receipt, signer)?)
/// }
/// ```
/// What a transaction appended, as long as it runs:
/// ```
/// # use oap_gateway::{Error, state::commits::{Appended, Draft, Writing}};
/// # use oap_memory::Receipt;
/// fn append<'tx>(w: &mut Writing<'_, 'tx>, draft: Draft) -> Result<Appended<'tx, Receipt>, Error> {
///     w.receipt("personal", draft)
/// }
/// ```
/// One that nothing appended:
/// ```compile_fail,E0308
/// # use oap_gateway::{Error, Gateway, state::commits::Stored};
/// # use oap_memory::Receipt;
/// # use std::sync::Arc;
/// async fn keep(gateway: Arc<Gateway>, forged: Receipt) -> Result<Stored<Receipt>, Error> {
///     Ok(gateway.record(move |_| Ok((forged, ()))).await?.0)
/// }
/// ```
/// One that came out of a commit, with nothing appended:
/// ```compile_fail,E0277
/// # use oap_exchange::respond::{Items, Unsent, respond};
/// # use oap_gateway::{Error, Gateway};
/// # use oap_identity::Signer;
/// # use oap_memory::Receipt;
/// # use std::sync::Arc;
/// async fn leave(
///     gateway: Arc<Gateway>, forged: Receipt, answer: Unsent<Items>, signer: &Signer,
/// ) -> Result<Vec<u8>, Error> {
///     let receipt = gateway.commit(move |_| Ok(forged)).await?;
///     Ok(respond(answer, &receipt, signer)?)
/// }
/// ```
/// One that was appended, out of its transaction before that is durable:
/// ```compile_fail
/// # use oap_gateway::{Error, Gateway, state::commits::Draft};
/// # use std::sync::Arc;
/// async fn keep(gateway: Arc<Gateway>, draft: Draft) -> Result<(), Error> {
///     let appended = gateway.commit(move |w| w.receipt("personal", draft)).await?;
///     Ok(())
/// }
/// ```
/// One that another transaction appended:
/// ```compile_fail
/// # use oap_gateway::{Error, Gateway, state::commits::{Appended, Stored}};
/// # use oap_memory::Receipt;
/// # use std::sync::Arc;
/// async fn keep(gateway: Arc<Gateway>, other: Appended<'static, Receipt>) -> Result<Stored<Receipt>, Error> {
///     Ok(gateway.record(move |_| Ok((other, ()))).await?.0)
/// }
/// ```
/// Written by hand:
/// ```compile_fail,E0423
/// # use oap_gateway::state::commits::Stored;
/// # use oap_memory::Receipt;
/// fn keep(forged: Receipt) -> Stored<Receipt> {
///     Stored(forged)
/// }
/// ```
/// ```compile_fail,E0451
/// # use oap_gateway::state::commits::Appended;
/// # use oap_memory::Receipt;
/// # use std::marker::PhantomData;
/// fn append<'tx>(forged: Receipt) -> Appended<'tx, Receipt> {
///     Appended { value: forged, transaction: PhantomData }
/// }
/// ```
struct AReceipt;

/// The owner's preview of a grant.
/// ```
/// # use oap_exchange::Preview;
/// # use oap_gateway::{Error, Gateway};
/// # use oap_grants::Grant;
/// fn look(gateway: &Gateway, grant: &Grant) -> Result<Preview, Error> {
///     gateway.would_show(grant)
/// }
/// ```
/// A view comes of it in no way:
/// ```compile_fail,E0308
/// # use oap_exchange::View;
/// # use oap_gateway::{Error, Gateway};
/// # use oap_grants::Grant;
/// fn look(gateway: &Gateway, grant: &Grant) -> Result<View, Error> {
///     gateway.would_show(grant)
/// }
/// ```
struct APreview;

/// The owner, with a permission.
/// ```
/// # use oap_gateway::{Error, Gateway, state::owner::{Owner, mark::Admin}};
/// # use std::sync::Arc;
/// async fn chains(gateway: Arc<Gateway>, owner: Owner<Admin>) -> Result<(), Error> {
///     oap_gateway::service::Audit(&gateway).chain_list(&owner).map(drop)
/// }
/// ```
/// One who may only read:
/// ```compile_fail,E0277
/// # use oap_gateway::{Error, Gateway, state::owner::{Owner, mark::Read}};
/// # use std::sync::Arc;
/// async fn chains(gateway: Arc<Gateway>, owner: Owner<Read>) -> Result<(), Error> {
///     oap_gateway::service::Audit(&gateway).chain_list(&owner).map(drop)
/// }
/// ```
/// One with a permission of a stranger's making:
/// ```compile_fail,E0277
/// # use oap_gateway::{Error, Gateway, state::owner::Owner};
/// # use std::sync::Arc;
/// struct Everything;
/// async fn chains(gateway: Arc<Gateway>, owner: Owner<Everything>) -> Result<(), Error> {
///     oap_gateway::service::Audit(&gateway).chain_list(&owner).map(drop)
/// }
/// ```
/// ```compile_fail,E0603
/// # use oap_gateway::state::owner::mark::sealed::Sealed;
/// struct Everything;
/// impl Sealed for Everything {}
/// ```
/// One made into more:
/// ```compile_fail,E0308
/// # use oap_gateway::state::owner::{Owner, mark::{Admin, Read}};
/// fn more(owner: Owner<Read>) -> Owner<Admin> {
///     Owner { permits: std::marker::PhantomData, ..owner }
/// }
/// ```
struct AnOwner;

/// One of the owner's agents, with a permission.
/// ```
/// # use oap_gateway::{Error, Gateway, api::agents::{ToolAnswer, ToolCall}, service::Tools};
/// # use std::sync::Arc;
/// use oap_gateway::state::{agents::Agent as By, owner::mark::Read};
/// async fn ask(gateway: Arc<Gateway>, by: By<Read>, call: ToolCall) -> Result<ToolAnswer, Error> {
///     Tools(&gateway).call(&by, call).await
/// }
/// ```
/// The owner, who has not said as which:
/// ```compile_fail,E0308
/// # use oap_gateway::{Error, Gateway, api::agents::{ToolAnswer, ToolCall}, service::Tools};
/// # use std::sync::Arc;
/// use oap_gateway::state::owner::{Owner as By, mark::Read};
/// async fn ask(gateway: Arc<Gateway>, by: By<Read>, call: ToolCall) -> Result<ToolAnswer, Error> {
///     Tools(&gateway).call(&by, call).await
/// }
/// ```
/// Who is an agent is asked of the gateway, by an owner who may do all:
/// ```
/// # use oap_gateway::{Error, Gateway, api::agents::AgentRef, state::agents::Agent};
/// # use oap_gateway::state::owner::{Owner, mark::{Admin, Read}};
/// fn become_one(gateway: &Gateway, owner: &Owner<Admin>, name: &AgentRef) -> Result<Agent<Read>, Error> {
///     gateway.agent_as(owner, name)
/// }
/// ```
/// By one who may only read:
/// ```compile_fail,E0277
/// # use oap_gateway::{Error, Gateway, api::agents::AgentRef, state::agents::Agent};
/// # use oap_gateway::state::owner::{Owner, mark::Read};
/// fn become_one(gateway: &Gateway, owner: &Owner<Read>, name: &AgentRef) -> Result<Agent<Read>, Error> {
///     gateway.agent_as(owner, name)
/// }
/// ```
/// One that may do more is asked of its permission:
/// ```
/// # use oap_gateway::{Error, state::{agents::Agent, owner::mark::{Read, Write}}};
/// fn more(agent: Agent<Read>) -> Result<Agent<Write>, Error> {
///     agent.permitted()
/// }
/// ```
/// Taken for such a one:
/// ```compile_fail,E0308
/// # use oap_gateway::{Error, state::{agents::Agent, owner::mark::{Read, Write}}};
/// fn more(agent: Agent<Read>) -> Result<Agent<Write>, Error> {
///     Ok(agent)
/// }
/// ```
/// Written by hand:
/// ```compile_fail,E0451
/// # use oap_gateway::state::{agents::Agent, owner::{Permission, mark::Read}};
/// fn more(agent: Agent<Read>) -> Agent<Read> {
///     Agent { permission: Permission::Admin, ..agent }
/// }
/// ```
struct AnAgent;
