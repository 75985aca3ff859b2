package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// plan is what a Node client is told to do (see drive.mjs).
type plan struct {
	Features    bool              `json:"features"` // declare and answer elicitation, sampling, roots
	Negotiation any               `json:"negotiation,omitempty"`
	Roots       []string          `json:"roots,omitempty"`
	Calls       []toolCall        `json:"calls"`
	Reads       []string          `json:"reads,omitempty"`
	Prompts     map[string]object `json:"prompts,omitempty"`
	Complete    object            `json:"complete,omitempty"`
	Progress    *toolCall         `json:"progress,omitempty"`
	Cancel      *toolCall         `json:"cancel,omitempty"`
	Pair        *toolCall         `json:"pair,omitempty"`

	completion []string // what Complete must bring
}

type object = map[string]any

// toolCall is one call and the text its result must contain.
type toolCall struct {
	Name      string `json:"name"`
	Arguments object `json:"arguments,omitempty"`
	Want      string `json:"want,omitempty"`
	// conditional: the server lists the tool only to clients with the feature.
	conditional bool
	// task: the tool runs as a legacy task only, which a modern client cannot start;
	// it must get an answer all the same.
	task bool
}

// report is what a Node client found.
type report struct {
	Version string `json:"version"`
	Listed  struct {
		Tools     []string `json:"tools"`
		Resources []string `json:"resources"`
		Prompts   []string `json:"prompts"`
	} `json:"listed"`
	Calls      map[string]part `json:"calls"`
	Reads      map[string]part `json:"reads"`
	Prompts    map[string]part `json:"prompts"`
	Completion json.RawMessage `json:"completion"`
	Progress   *part           `json:"progress"`
	Cancel     *part           `json:"cancel"`
	Pair       *struct {
		Error  string   `json:"error"`
		Calls  int      `json:"calls"`
		Wrong  []string `json:"wrong"`
		Errors []string `json:"errors"`
	} `json:"pair"`
}

// part is one outcome; Error is set if the request failed.
type part struct {
	Error    string    `json:"error"`
	Skipped  string    `json:"skipped"`
	IsError  bool      `json:"isError"`
	Parts    int       `json:"parts"`
	Size     int       `json:"size"`
	Text     string    `json:"text"`
	Seen     []float64 `json:"seen"`
	Finished bool      `json:"finished"`
	MS       int       `json:"ms"`
}

// runClient runs one of the client scripts against an endpoint.
func runClient(t *testing.T, script, endpoint string, p plan) report {
	t.Helper()
	node := shop.Node(t)
	shop.Peer(t, "@modelcontextprotocol/client/package.json")
	file := filepath.Join(t.TempDir(), "plan.json")
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, filepath.Join("..", "peers", script), endpoint, file)
	var complaints strings.Builder
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, complaints.String())
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%s printed no report: %v\n%s", script, err, out)
	}
	return r
}

// judge compares a report with its plan.
func judge(t *testing.T, p plan, r report) {
	t.Helper()
	judgeCalls(t, p, r)
	for _, uri := range append(r.Listed.Resources, p.Reads...) {
		if got := r.Reads[uri]; got.Error != "" || got.Parts == 0 || got.Size == 0 {
			t.Errorf("read %s: %+v", uri, got)
		}
	}
	for _, name := range r.Listed.Prompts {
		if got := r.Prompts[name]; got.Error != "" || got.Parts == 0 {
			t.Errorf("prompt %s: %+v", name, got)
		}
	}
	if p.Complete != nil {
		var got []string
		if err := json.Unmarshal(r.Completion, &got); err != nil || !sameSet(got, p.completion) {
			t.Errorf("completion: got %s, want %q", r.Completion, p.completion)
		}
	}
	judgeProgress(t, p, r)
	judgePair(t, p, r)
}

// judgeCalls wants every listed tool to be in the plan and to have answered well.
func judgeCalls(t *testing.T, p plan, r report) {
	t.Helper()
	planned := map[string]toolCall{}
	for _, c := range p.Calls {
		planned[c.Name] = c
		if _, called := r.Calls[c.Name]; !called && (p.Features || !c.conditional) {
			t.Errorf("%s is not listed", c.Name)
		}
	}
	for _, name := range r.Listed.Tools {
		got, want := r.Calls[name], planned[name]
		switch {
		case want.Name == "":
			t.Errorf("%s is listed and not in the plan", name)
		case got.Skipped != "":
			t.Logf("%s: %s", name, got.Skipped)
		case want.task && r.Version >= "2026-07-28":
			if got.Error == "" && got.Parts == 0 {
				t.Errorf("%s: no answer", name)
			}
		case got.Error != "" || got.IsError || got.Parts == 0 || !strings.Contains(got.Text, want.Want):
			got.Text = got.Text[:min(len(got.Text), 300)]
			t.Errorf("%s: got %+v, want %q in it", name, got, want.Want)
		}
	}
}

func judgeProgress(t *testing.T, p plan, r report) {
	t.Helper()
	if p.Progress != nil {
		switch got := r.Progress; {
		case got == nil || got.Error != "" || got.IsError || len(got.Seen) < 2:
			t.Errorf("progress: got %+v", got)
		default:
			for i := 1; i < len(got.Seen); i++ {
				if got.Seen[i] <= got.Seen[i-1] {
					t.Errorf("progress went back: %v", got.Seen)
				}
			}
		}
	}
	if p.Cancel != nil {
		const limit = 10_000 // milliseconds; the call itself takes longer
		if got := r.Cancel; got == nil || got.Finished || got.Error == "" || got.MS > limit {
			t.Errorf("cancel: got %+v", got)
		}
	}
}

func judgePair(t *testing.T, p plan, r report) {
	t.Helper()
	if p.Pair == nil {
		return
	}
	if got := r.Pair; got == nil || got.Error != "" || got.Calls == 0 || len(got.Wrong) > 0 || len(got.Errors) > 0 {
		t.Errorf("two clients at once: got %+v", got)
	}
}

// peerServer is the command of a server from npm.
func peerServer(t *testing.T, name string, args ...string) []string {
	t.Helper()
	entry := shop.Peer(t, "@modelcontextprotocol/"+name+"/dist/index.js")
	return append([]string{shop.Node(t), entry}, args...)
}
