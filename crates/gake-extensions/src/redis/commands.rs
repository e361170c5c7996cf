//! The commands of a client: their arguments and the types of their results.

/// A parameter of a method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parameter {
    /// A string.
    Text,
    /// An integer.
    Integer,
    /// A string, number or boolean.
    Value,
    /// Seconds after which a key expires; 0 for never.
    Expiry,
    /// Any number of strings.
    Texts,
    /// Any number of strings, numbers and booleans.
    Values,
}

/// The type of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ResultType {
    /// A string; no value is an error.
    Text,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// A time to live, in seconds.
    Seconds,
    /// Strings.
    Texts,
    /// Strings, or `null` for each that is absent.
    Optional,
    /// An object of strings.
    Object,
    /// Whatever the server replies; no value is an error.
    Any,
}

/// A method and its command.
pub(super) struct Command {
    /// The name of the method; that of the command in lower case.
    pub(super) method: &'static str,
    pub(super) parameters: &'static [Parameter],
    pub(super) result: ResultType,
}

const fn of(method: &'static str, parameters: &'static [Parameter], result: ResultType) -> Command {
    Command { method, parameters, result }
}

/// The method whose first argument is the command.
pub(super) const SEND: &str = "sendCommand";

/// All methods that send a command.
pub(super) static COMMANDS: &[Command] = {
    use Parameter::{Expiry, Integer, Text, Texts, Value, Values};
    use ResultType as Of;
    &[
        of("set", &[Text, Value, Expiry], Of::Text),
        of("get", &[Text], Of::Text),
        of("getSet", &[Text, Value], Of::Text),
        of("del", &[Texts], Of::Number),
        of("getDel", &[Text], Of::Text),
        of("exists", &[Texts], Of::Number),
        of("incr", &[Text], Of::Number),
        of("incrBy", &[Text, Integer], Of::Number),
        of("decr", &[Text], Of::Number),
        of("decrBy", &[Text, Integer], Of::Number),
        of("randomKey", &[], Of::Text),
        of("mget", &[Texts], Of::Optional),
        of("expire", &[Text, Integer], Of::Boolean),
        of("ttl", &[Text], Of::Seconds),
        of("persist", &[Text], Of::Boolean),
        of("lpush", &[Text, Values], Of::Number),
        of("rpush", &[Text, Values], Of::Number),
        of("lpop", &[Text], Of::Text),
        of("rpop", &[Text], Of::Text),
        of("lrange", &[Text, Integer, Integer], Of::Texts),
        of("lindex", &[Text, Integer], Of::Text),
        of("lset", &[Text, Integer, Text], Of::Text),
        of("lrem", &[Text, Integer, Text], Of::Number),
        of("llen", &[Text], Of::Number),
        of("hset", &[Text, Text, Value], Of::Number),
        of("hsetnx", &[Text, Text, Text], Of::Boolean),
        of("hget", &[Text, Text], Of::Text),
        of("hdel", &[Text, Texts], Of::Number),
        of("hgetall", &[Text], Of::Object),
        of("hkeys", &[Text], Of::Texts),
        of("hvals", &[Text], Of::Texts),
        of("hlen", &[Text], Of::Number),
        of("hincrby", &[Text, Text, Integer], Of::Number),
        of("sadd", &[Text, Values], Of::Number),
        of("srem", &[Text, Values], Of::Number),
        of("sismember", &[Text, Value], Of::Boolean),
        of("smembers", &[Text], Of::Texts),
        of("srandmember", &[Text], Of::Text),
        of("spop", &[Text], Of::Text),
        of(SEND, &[Text, Values], Of::Any),
    ]
};
