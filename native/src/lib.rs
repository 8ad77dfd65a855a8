//! The compiled core of PocketMQ.
//!
//! Each function replaces a pure-Python function of `pocketmq` that has the same name: the same
//! results, the same errors. It is called per burst or per batch; only the classes of `shared`,
//! `submits`, `receipts`, `received` and `bursts` are used per message, and `spin` per wait. Bytes
//! come from peers, so everything is read through checked slices and no `unsafe` is allowed.

pub mod answers;
pub mod batch;
pub mod batch_records;
pub mod bursts;
pub mod checksums;
pub mod frames;
pub mod grpc;
pub mod grpc_ack;
pub mod grpc_call;
pub mod grpc_delivery;
pub mod grpc_head;
pub mod grpc_pipe;
pub mod grpc_plain;
pub mod grpc_pop;
pub mod grpc_proto;
pub mod grpc_python;
pub mod grpc_send;
pub mod grpc_short;
pub mod half;
pub mod keys;
pub mod lane;
pub mod lane_records;
pub mod md5;
pub mod plain_send;
pub mod popped;
pub mod posts;
pub mod pulled;
pub mod python;
pub mod receipts;
pub mod received;
pub mod sends;
pub mod shared;
pub mod spin;
pub mod split_properties;
pub mod stored;
pub mod submits;
pub mod tags;
pub mod wire;

use pyo3::prelude::*;

/// What this build offers; `pocketmq.native` refuses a core with another number.
const API: u32 = 10;

/// The module `pocketmq_core`.
#[pymodule]
fn pocketmq_core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("API", API)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_function(wrap_pyfunction!(pulled::plain_messages, module)?)?;
    module.add_function(wrap_pyfunction!(received::body_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(received::offsets_and_bytes, module)?)?;
    module.add_function(wrap_pyfunction!(sends::plain_frame, module)?)?;
    module.add_function(wrap_pyfunction!(sends::plain_frames, module)?)?;
    module.add_function(wrap_pyfunction!(answers::stored_answer, module)?)?;
    module.add_function(wrap_pyfunction!(answers::take_receipts, module)?)?;
    module.add_function(wrap_pyfunction!(frames::cut_commands, module)?)?;
    module.add_function(wrap_pyfunction!(batch_records::pack_batch, module)?)?;
    module.add_function(wrap_pyfunction!(batch::encode_numbered, module)?)?;
    module.add_function(wrap_pyfunction!(batch::batch_frame, module)?)?;
    module.add_function(wrap_pyfunction!(answers::stored_batch, module)?)?;
    module.add_function(wrap_pyfunction!(popped::read_usual_pop, module)?)?;
    module.add_function(wrap_pyfunction!(popped::is_done, module)?)?;
    module.add_function(wrap_pyfunction!(half::usual_commit, module)?)?;
    module.add_class::<bursts::Followers>()?;
    module.add_class::<bursts::Turns>()?;
    module.add_class::<lane::SendLane>()?;
    module.add_class::<grpc_python::GrpcConnection>()?;
    module.add_class::<grpc_short::GrpcShortcuts>()?;
    module.add_class::<grpc_delivery::GrpcDeliveries>()?;
    module.add_class::<receipts::BatchReceipts>()?;
    module.add_class::<received::PulledRun>()?;
    module.add_class::<shared::Place>()?;
    module.add_class::<shared::OpenPlaces>()?;
    module.add_class::<spin::Spin>()?;
    module.add_class::<submits::PlainSubmits>()?;
    module.add_function(wrap_pyfunction!(keys::words_of_records, module)?)?;
    module.add_function(wrap_pyfunction!(md5::md5_starts, module)?)?;
    module.add_function(wrap_pyfunction!(checksums::wrong_body, module)?)?;
    module.add_function(wrap_pyfunction!(
        split_properties::split_properties,
        module
    )?)?;
    Ok(())
}
