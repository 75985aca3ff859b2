package era

import "mcpbridge/bridge/mcp"

// Carriage is how well something is carried.
type Carriage string

// The ways.
const (
	Same       Carriage = "same"       // as it is
	Translated Carriage = "translated" // in the words of the other era
	Partly     Carriage = "partly"
	Lost       Carriage = "lost"
)

// Carried tells how one thing reaches one kind of client, in words for people.
type Carried struct {
	What string   `json:"what"`
	How  Carriage `json:"how"`
	Text string   `json:"text,omitempty"`
}

// crossing is a row of the table of what happens between the eras.
type crossing struct {
	what     string
	needs    []string // path in the capabilities of the server, nil for what every server has
	toLegacy Carried  // a legacy client before a modern server
	toModern Carried  // a modern client before a legacy server
}

// Crossings are the cells of what crosses between a client and a server of different eras. The package comment lists the same.
var crossings = []crossing{
	{"handshake", nil, Carried{How: Translated, Text: "initialize is answered from the server's discovery"},
		Carried{How: Translated, Text: "discovery is answered from the server's handshake, which the bridge makes"}},
	{"tools", []string{"tools"}, Carried{How: Same}, Carried{How: Same}},
	{"resources", []string{"resources"}, Carried{How: Same}, Carried{How: Same}},
	{"prompts", []string{"prompts"}, Carried{How: Same}, Carried{How: Same}},
	{"completion", []string{"completions"}, Carried{How: Same}, Carried{How: Same}},
	{"progress and cancellation", nil, Carried{How: Same}, Carried{How: Same}},
	{"log messages", []string{"logging"}, Carried{How: Translated, Text: "the session's level goes with each request"},
		Carried{How: Partly, Text: "those a request asked for, if they can be told to be about it"}},
	{"questions of the server (elicitation, sampling, roots)", nil,
		Carried{How: Translated, Text: "asked by requests on the stream of the call, which is then made again with the answers"},
		Carried{How: Translated, Text: "the call is parked: the client is asked in its result, and a further request brings the answers"}},
	{"changes of lists", nil, Carried{How: Translated, Text: "the bridge listens for the session"},
		Carried{How: Translated, Text: "told on the client's listen"}},
	{"changes of resources", []string{"resources", "subscribe"}, Carried{How: Translated, Text: "a subscription becomes a listen"},
		Carried{How: Translated, Text: "a listen becomes a subscription, shared by all who want it"}},
	{"tasks", nil, Carried{How: Lost, Text: "never offered"}, Carried{How: Lost, Text: "never offered; a tool that runs as a task only cannot be called"}},
}

// Report tells what a client of a revision gets of a server. It is made for people: nothing is decided by it.
func Report(client mcp.Version, server mcp.Era, capabilities []byte) (list []Carried) {
	front := client.Era()
	for _, c := range crossings {
		if c.needs != nil && !HasCapability(capabilities, c.needs...) {
			continue
		}
		cell := Carried{How: Same}
		switch {
		case front == server:
		case front == mcp.Legacy:
			cell = c.toLegacy
		default:
			cell = c.toModern
		}
		cell.What = c.what
		list = append(list, cell)
	}
	return append(list, older(client, server)...)
}

// older is what a client of an older revision than the server's cannot take (translation 13.3).
func older(client mcp.Version, server mcp.Era) (list []Carried) {
	if client.Era() != mcp.Legacy {
		return nil
	}
	if !client.Audio() {
		list = append(list, Carried{"audio in results", Partly, "a line of text says that it was there"})
	}
	if !client.ResourceLinks() {
		list = append(list, Carried{"links to resources in results", Partly, "a line of text with name and address"})
	}
	if client.StructuredContent() && server == mcp.Modern {
		list = append(list, Carried{"structured content that is no object", Partly, "as text"})
	}
	if !client.AtLeast(mcp.V20250618) {
		list = append(list, Carried{"elicitation", Lost, "this revision has none"})
	}
	if !client.URLElicitation() {
		list = append(list, Carried{"questions by web page", Lost, "this revision has none"})
	}
	return list
}
