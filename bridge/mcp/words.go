package mcp

import "strings"

// Keys of _meta that the modern revision reserves (26:basic/index §_meta).
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaLogLevel           = "io.modelcontextprotocol/logLevel"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
	MetaRelatedTask        = "io.modelcontextprotocol/related-task"
	MetaProgressToken      = "progressToken"
)

// Extension ids the bridge knows by name (EXT-03).
const (
	ExtensionTasks = "io.modelcontextprotocol/tasks"
	ExtensionApps  = "io.modelcontextprotocol/ui"
)

// Header names in the spelling of net/http's canonical form, so that http.Header can be indexed with them.
const (
	HeaderProtocolVersion = "Mcp-Protocol-Version"
	HeaderMethod          = "Mcp-Method"
	HeaderName            = "Mcp-Name"
	HeaderParamPrefix     = "Mcp-Param-"
	HeaderSessionID       = "Mcp-Session-Id"
	HeaderLastEventID     = "Last-Event-Id"
)

// Error codes of JSON-RPC 2.0 and of MCP (FRM-17, FRM-18).
const (
	CodeParse                           = -32700
	CodeInvalidRequest                  = -32600
	CodeMethodNotFound                  = -32601
	CodeInvalidParams                   = -32602
	CodeInternal                        = -32603
	CodeResourceNotFound                = -32002 // legacy only
	CodeURLElicitationRequired          = -32042 // 2025-11-25 only
	CodeHeaderMismatch                  = -32020
	CodeMissingRequiredCapability       = -32021
	CodeUnsupportedProtocolVersion      = -32022
	codeReservedFirst, codeReservedLast = -32099, -32020
)

// ReservedCode reports whether code lies in the range whose members a modern peer may only see with the meaning the
// revision gives them (FRM-18).
func ReservedCode(code int) bool { return code >= codeReservedFirst && code <= codeReservedLast }

// Values of resultType (FRM-21).
const (
	ResultComplete      = "complete"
	ResultInputRequired = "input_required"
	ResultTask          = "task"
)

// Level is a log severity of RFC 5424, the least severe first (LOG-08).
type Level int8

// NoLevel stands for a request that did not ask for log messages, or a level name nobody knows.
const NoLevel Level = -1

var levels = [...]string{"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}

// ParseLevel returns the level of that name, NoLevel if there is none (LOG-03).
func ParseLevel(name string) Level {
	for i, n := range levels {
		if n == name {
			return Level(i)
		}
	}
	return NoLevel
}

func (l Level) String() string {
	if l < 0 || int(l) >= len(levels) {
		return "none"
	}
	return levels[l]
}

// reservedHeaders belong to the transport: no configuration may set them.
var reservedHeaders = []string{"Accept", "Connection", "Content-Length", "Content-Type", "Host", "Keep-Alive", "TE", "Trailer",
	"Transfer-Encoding", "Upgrade", HeaderProtocolVersion, HeaderMethod, HeaderName, HeaderSessionID, HeaderLastEventID}

// ReservedHeader reports whether a header of requests to a server is the transport's own.
func ReservedHeader(name string) bool {
	for _, r := range reservedHeaders {
		if strings.EqualFold(r, name) {
			return true
		}
	}
	return len(name) >= len(HeaderParamPrefix) && strings.EqualFold(name[:len(HeaderParamPrefix)], HeaderParamPrefix)
}
