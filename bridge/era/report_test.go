package era

import (
	"os"
	"strings"
	"testing"

	"mcpbridge/bridge/mcp"
)

// The package comment lists the same cells as the report.
func TestReportIsDocumented(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	doc := strings.Join(strings.Fields(strings.ReplaceAll(string(text), "\n//", "\n")), " ")
	for _, c := range crossings {
		for _, cell := range []Carried{c.toLegacy, c.toModern} {
			want := string(cell.How)
			if cell.Text != "" {
				want = cell.Text
			}
			if !strings.Contains(doc, c.what+":") || !strings.Contains(doc, want) {
				t.Errorf("doc.go does not tell of %s: %s", c.what, want)
			}
		}
	}
}

// Within an era nothing is said to be translated; between the eras everything the server has is in the report, and only that.
func TestReport(t *testing.T) {
	caps := []byte(`{"tools":{},"logging":{}}`)
	for _, c := range Report(mcp.V20260728, mcp.Modern, caps) {
		if c.How != Same {
			t.Errorf("%+v", c)
		}
	}
	var what []string
	for _, c := range Report(mcp.V20241105, mcp.Modern, caps) {
		what = append(what, c.What+" "+string(c.How))
	}
	all := strings.Join(what, "; ")
	for _, want := range []string{"handshake translated", "tools same", "log messages translated", "tasks lost", "audio in results partly", "elicitation lost"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in %s", want, all)
		}
	}
	if strings.Contains(all, "prompts") {
		t.Errorf("prompts in %s", all)
	}
}
