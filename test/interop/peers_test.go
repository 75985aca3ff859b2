package interop

import (
	"os"
	"path/filepath"
	"testing"
)

// nodeClient is one way a client from npm comes in.
type nodeClient struct {
	name, script string
	negotiation  any
	features     bool
	version      string
}

// The servers from npm speak legacy revisions. A modern client declares no features
// in front of them: questions do not cross the eras in this version.
var nodeClients = []nodeClient{
	{"v1", "client-v1.mjs", nil, true, "2025-11-25"},
	{"v1 without features", "client-v1.mjs", nil, false, "2025-11-25"},
	{"v2 legacy", "client-v2.mjs", "legacy", true, "2025-11-25"},
	{"v2 modern", "client-v2.mjs", object{"pin": "2026-07-28"}, false, "2026-07-28"},
}

// backend is one server from npm: its command and what to do with it.
type backend func(t *testing.T) ([]string, plan)

func TestNodeClients(t *testing.T) {
	for name, start := range map[string]backend{
		"server-everything": everything,
		"server-filesystem": filesystem,
		"server-memory":     memory,
	} {
		for _, c := range nodeClients {
			t.Run(name+"/"+c.name, func(t *testing.T) {
				command, p := start(t)
				p.Features, p.Negotiation = c.features, c.negotiation
				check(t, c, shop.Serve(t, command...).URL, p)
			})
		}
	}
}

// TestNodeClientsOnDemo has a server that speaks both eras, so a modern client may
// be asked too.
func TestNodeClientsOnDemo(t *testing.T) {
	clients := append(nodeClients,
		nodeClient{"v2 modern with features", "client-v2.mjs", object{"pin": "2026-07-28"}, true, "2026-07-28"},
		nodeClient{"v2 auto", "client-v2.mjs", "auto", true, "2026-07-28"})
	shop.Node(t)
	server := serveDemo(t)
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			p := demo()
			p.Features, p.Negotiation = c.features, c.negotiation
			if !c.features { // it would rightly be refused
				p.Calls = p.Calls[:len(p.Calls)-1]
			}
			r := runClient(t, c.script, server.URL, p)
			if !c.features {
				r.Listed.Tools = without(r.Listed.Tools, "ask")
			}
			if r.Version != c.version {
				t.Errorf("negotiated %s, want %s", r.Version, c.version)
			}
			judge(t, p, r)
		})
	}
}

func without(list []string, name string) []string {
	var rest []string
	for _, x := range list {
		if x != name {
			rest = append(rest, x)
		}
	}
	return rest
}

func check(t *testing.T, c nodeClient, endpoint string, p plan) {
	t.Helper()
	r := runClient(t, c.script, endpoint, p)
	if r.Version != c.version {
		t.Errorf("negotiated %s, want %s", r.Version, c.version)
	}
	judge(t, p, r)
}

func demo() plan {
	return plan{
		Calls: []toolCall{
			{Name: "echo", Arguments: object{"text": spelledText}, Want: spelledText},
			{Name: "add", Arguments: object{"a": 2, "b": 3}, Want: `{"sum":5}`},
			{Name: "countdown", Arguments: object{"from": 2}, Want: "counted down from 2"},
			{Name: "log", Arguments: object{"level": "info", "text": "x"}},
			{Name: "region_echo", Arguments: object{"region": "eu", "text": "x"}, Want: "eu: x"},
			{Name: "touch", Want: "ticks: "},
			{Name: "ask", Arguments: object{"question": "Which colour?"}, Want: "text"},
		},
		Reads:      []string{greetingURI},
		Prompts:    map[string]object{"greet": {"name": "Ada"}},
		Complete:   object{"ref": object{"type": "ref/prompt", "name": "greet"}, "argument": object{"name": "name", "value": "a"}},
		completion: []string{"Ada", "Alan"},
		Progress:   &toolCall{Name: "countdown", Arguments: object{"from": 4, "delayMs": 50}},
		Cancel:     &toolCall{Name: "countdown", Arguments: object{"from": 1000, "delayMs": 200}},
		Pair:       &toolCall{Name: "echo", Arguments: object{"text": "@@"}, Want: "@@"},
	}
}

func everything(t *testing.T) ([]string, plan) {
	return peerServer(t, "server-everything"), plan{
		Roots: []string{"file:///nowhere"},
		Calls: []toolCall{
			{Name: "echo", Arguments: object{"message": "hi"}, Want: "Echo: hi"},
			{Name: "get-env", Want: "PATH"},
			{Name: "get-sum", Arguments: object{"a": 2, "b": 3}, Want: "is 5."},
			{Name: "get-tiny-image", Want: "image"},
			{Name: "get-annotated-message", Arguments: object{"messageType": "success", "includeImage": true}, Want: "image"},
			{Name: "get-resource-links", Arguments: object{"count": 2}, Want: "resource_link"},
			{Name: "get-resource-reference", Arguments: object{"resourceType": "Text", "resourceId": 1}, Want: "resource"},
			{Name: "get-structured-content", Arguments: object{"location": "Chicago"}, Want: `"temperature"`},
			{Name: "gzip-file-as-resource", Arguments: object{"name": "x.gz", "data": "data:text/plain,hello", "outputType": "resource"}, Want: "resource"},
			{Name: "toggle-simulated-logging", Want: "logging"},
			{Name: "toggle-subscriber-updates", Want: "updated notifications"},
			{Name: "trigger-long-running-operation", Arguments: object{"duration": 0.2, "steps": 2}, Want: "Steps: 2."},
			{Name: "simulate-research-query", Arguments: object{"topic": "bridges"}, Want: "bridges", task: true},
			{Name: "get-roots-list", Want: "file:///nowhere", conditional: true},
			{Name: "trigger-elicitation-request", Want: "Name: text", conditional: true},
			{Name: "trigger-sampling-request", Arguments: object{"prompt": "say"}, Want: "sampled text", conditional: true},
		},
		Reads: []string{"demo://resource/dynamic/text/1", "demo://resource/dynamic/blob/2"},
		Prompts: map[string]object{
			"args-prompt":        {"city": "Rome"},
			"completable-prompt": {"department": "Sales", "name": "David"},
			"resource-prompt":    {"resourceType": "Text", "resourceId": "1"},
		},
		Complete: object{
			"ref":      object{"type": "ref/prompt", "name": "completable-prompt"},
			"argument": object{"name": "department", "value": "S"},
		},
		completion: []string{"Sales", "Support"},
		Progress:   &toolCall{Name: "trigger-long-running-operation", Arguments: object{"duration": 0.4, "steps": 4}},
		Cancel:     &toolCall{Name: "trigger-long-running-operation", Arguments: object{"duration": 30, "steps": 60}},
		Pair:       &toolCall{Name: "echo", Arguments: object{"message": "@@"}, Want: "@@"},
	}
}

// filesystem serves a folder of the test's own.
func filesystem(t *testing.T) ([]string, plan) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, text := range map[string]string{"a.txt": "first file\n", "b.txt": "second file\n", "dot.png": "\x89PNG\r\n\x1a\n"} {
		if err := os.WriteFile(path(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return peerServer(t, "server-filesystem", dir), plan{
		Roots: []string{"file://" + filepath.ToSlash(dir)},
		Calls: []toolCall{
			{Name: "read_file", Arguments: object{"path": path("a.txt")}, Want: "first file"},
			{Name: "read_text_file", Arguments: object{"path": path("a.txt"), "head": 1}, Want: "first file"},
			{Name: "read_media_file", Arguments: object{"path": path("dot.png")}, Want: "image"},
			{Name: "read_multiple_files", Arguments: object{"paths": []string{path("a.txt"), path("b.txt")}}, Want: "second file"},
			{Name: "write_file", Arguments: object{"path": path("new.txt"), "content": "one\ntwo\n"}, Want: "new.txt"},
			{Name: "edit_file", Arguments: object{"path": path("new.txt"), "edits": []object{{"oldText": "two", "newText": "three"}}}, Want: "+three"},
			{Name: "create_directory", Arguments: object{"path": path("sub/deep")}, Want: "deep"},
			{Name: "move_file", Arguments: object{"source": path("new.txt"), "destination": path("sub/moved.txt")}, Want: "moved.txt"},
			{Name: "list_directory", Arguments: object{"path": dir}, Want: "[DIR] sub"},
			{Name: "list_directory_with_sizes", Arguments: object{"path": dir}, Want: "a.txt"},
			{Name: "directory_tree", Arguments: object{"path": dir}, Want: "moved.txt"},
			{Name: "search_files", Arguments: object{"path": dir, "pattern": "**/moved*"}, Want: "moved.txt"},
			{Name: "get_file_info", Arguments: object{"path": path("b.txt")}, Want: "size"},
			{Name: "list_allowed_directories", Want: dir},
		},
		Pair: &toolCall{Name: "write_file", Arguments: object{"path": path("@@"), "content": "x"}, Want: "@@"},
	}
}

// memory keeps its graph in a file of the test's own.
func memory(t *testing.T) ([]string, plan) {
	graph := filepath.Join(t.TempDir(), "graph.jsonl")
	command := append([]string{"env", "MEMORY_FILE_PATH=" + graph}, peerServer(t, "server-memory")...)
	relation := object{"from": "bridge", "to": "river", "relationType": "crosses"}
	return command, plan{
		Calls: []toolCall{
			{Name: "create_entities", Arguments: object{"entities": []object{
				{"name": "bridge", "entityType": "thing", "observations": []string{"long"}},
				{"name": "river", "entityType": "thing", "observations": []string{"wet"}},
			}}, Want: "river"},
			{Name: "create_relations", Arguments: object{"relations": []object{relation}}, Want: "crosses"},
			{Name: "add_observations", Arguments: object{"observations": []object{{"entityName": "bridge", "contents": []string{"old"}}}}, Want: "old"},
			{Name: "read_graph", Want: "bridge"},
			{Name: "search_nodes", Arguments: object{"query": "wet"}, Want: "river"},
			{Name: "open_nodes", Arguments: object{"names": []string{"bridge"}}, Want: "long"},
			{Name: "delete_observations", Arguments: object{"deletions": []object{{"entityName": "bridge", "observations": []string{"old"}}}}, Want: "success"},
			{Name: "delete_relations", Arguments: object{"relations": []object{relation}}, Want: "success"},
			{Name: "delete_entities", Arguments: object{"entityNames": []string{"river"}}, Want: "success"},
		},
		// An entity that is not there is none of the answer, but its call's own answer has the text.
		Pair: &toolCall{Name: "open_nodes", Arguments: object{"names": []string{"bridge", "@@"}}, Want: "long"},
	}
}
