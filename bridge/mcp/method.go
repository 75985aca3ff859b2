package mcp

// Methods and notifications the bridge treats by name. Others pass as they are (translation 17.6).
const (
	Initialize             = "initialize"
	Ping                   = "ping"
	Discover               = "server/discover"
	Listen                 = "subscriptions/listen"
	ToolsList              = "tools/list"
	ToolsCall              = "tools/call"
	PromptsList            = "prompts/list"
	PromptsGet             = "prompts/get"
	ResourcesList          = "resources/list"
	ResourcesTemplatesList = "resources/templates/list"
	ResourcesRead          = "resources/read"
	ResourcesSubscribe     = "resources/subscribe"
	ResourcesUnsubscribe   = "resources/unsubscribe"
	Complete               = "completion/complete"
	SetLevel               = "logging/setLevel"
	TasksGet               = "tasks/get"
	TasksUpdate            = "tasks/update"
	TasksCancel            = "tasks/cancel"
	TasksResult            = "tasks/result"
	TasksList              = "tasks/list"

	ElicitationCreate     = "elicitation/create"
	SamplingCreateMessage = "sampling/createMessage"
	RootsList             = "roots/list"

	Initialized          = "notifications/initialized"
	Cancelled            = "notifications/cancelled"
	Progress             = "notifications/progress"
	LogMessage           = "notifications/message"
	ToolsListChanged     = "notifications/tools/list_changed"
	PromptsListChanged   = "notifications/prompts/list_changed"
	ResourcesListChanged = "notifications/resources/list_changed"
	ResourcesUpdated     = "notifications/resources/updated"
	RootsListChanged     = "notifications/roots/list_changed"
	Acknowledged         = "notifications/subscriptions/acknowledged"
	ElicitationComplete  = "notifications/elicitation/complete"
)

// Traits are the facts about a request method that decide how it is carried.
type Traits struct {
	// Only is the era a method is confined to, EraUnknown if both have it or nobody knows it. A method of the other
	// era is never forwarded (translation 17.6).
	Only Era
	// Cacheable results carry ttlMs and cacheScope in the modern era (CCH-01).
	Cacheable bool
	// MayAsk methods can be answered with input_required (MRT-01).
	MayAsk bool
	// NameParam is the member of params that the Mcp-Name header mirrors, "" if none (HTTP-M-26, HTTP-M-40).
	NameParam string
	// Repeatable requests may be sent again after the server was lost (STD-06).
	Repeatable bool
	// Capability is the server capability that announces the method, "" if none.
	Capability string
}

var traits = map[string]Traits{
	Initialize:             {Only: Legacy},
	Ping:                   {Only: Legacy},
	Discover:               {Only: Modern, Cacheable: true, Repeatable: true},
	Listen:                 {Only: Modern},
	ToolsList:              {Cacheable: true, Repeatable: true, Capability: "tools"},
	ToolsCall:              {MayAsk: true, NameParam: "name", Capability: "tools"},
	PromptsList:            {Cacheable: true, Repeatable: true, Capability: "prompts"},
	PromptsGet:             {MayAsk: true, NameParam: "name", Capability: "prompts"},
	ResourcesList:          {Cacheable: true, Repeatable: true, Capability: "resources"},
	ResourcesTemplatesList: {Cacheable: true, Repeatable: true, Capability: "resources"},
	ResourcesRead:          {Cacheable: true, MayAsk: true, Repeatable: true, NameParam: "uri", Capability: "resources"},
	ResourcesSubscribe:     {Only: Legacy, Capability: "resources"},
	ResourcesUnsubscribe:   {Only: Legacy, Capability: "resources"},
	Complete:               {Repeatable: true, Capability: "completions"},
	SetLevel:               {Only: Legacy, Capability: "logging"},
	TasksGet:               {NameParam: "taskId"},
	TasksUpdate:            {Only: Modern, NameParam: "taskId"},
	TasksCancel:            {NameParam: "taskId"},
	TasksResult:            {Only: Legacy},
	TasksList:              {Only: Legacy},
}

// TraitsOf returns the traits of a request method, the zero value for one the bridge does not know.
func TraitsOf(method string) Traits { return traits[method] }
