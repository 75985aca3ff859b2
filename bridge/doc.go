// Package bridge is the core: exchanges, links, the call table, progress, cancellation, log levels, errors and limits.
// It knows neither HTTP nor processes: fronts hand it exchanges, backs hand it upstreams.
//
// An Exchange is one client message with its sender and a Sink for what comes back. A Link is one running relation to a
// server; it survives the server's death and opens a Conn, one incarnation, when the next message needs it. A Conn owns
// the call table: ids and progress tokens towards the server are its own, the client's are restored byte for byte.
package bridge
