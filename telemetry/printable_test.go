package telemetry

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"mcpbridge/bridge/mask"
)

func TestPrintable(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "",
		"plain text, tab\tand grüße 中 😀 ": "plain text, tab\tand grüße 中 😀 ",
		"dos\r":                           "dos",
		"10%\r20%\r":                      `10%\x0d20%`,
		"\x1b[31mred\x1b[0m":              "red",
		"\x1b[1;38;5;200mx\x1b[K":         "x",
		"\x1b]0;title\arest":              "rest",
		"\x1b]8;;http://a\x1b\\link":      "link",
		"\x1bPdcs\x1b\\x":                 "x",
		"\x1b]never ends":                 "never ends",
		"\x1b[never":                      "ever",
		"\x1b[12\x01x":                    `\x01x`,
		"\x1bcreset":                      "reset",
		"end\x1b":                         "end",
		"end\x1b[":                        "end",
		"\x1b\x1b[31mx":                   "x",
		"bell\a null\x00 del\x7f":         `bell\x07 null\x00 del\x7f`,
		"\u009b31m c1":                    `\u009b31m c1`,
		"a\xffb\xc3":                      "a\ufffdb\ufffd",
		"real \ufffd":                     "real \ufffd",
		"new\nline\u2028sep":              `new\x0aline\u2028sep`,
		"\u202eevil\u202c \u2066x \u200f": `\u202eevil\u202c \u2066x \u200f`,
		"C1 as a byte \x9b31m":            "C1 as a byte \ufffd31m",
		"no-break space \u00a0 is a word": "no-break space \u00a0 is a word",
		"\x1b\x01after":                   `\x01after`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func FuzzPrintable(f *testing.F) {
	for _, seed := range []string{"", "\x1b[31mx\x1b[0m", "\x1b]0;t\a", "\xff\x1b", "\u202e", "a\r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Printable(text)
		if !utf8.ValidString(got) {
			t.Fatalf("%q became invalid UTF-8 %q", text, got)
		}
		if at := strings.IndexFunc(got, func(r rune) bool { return unicode.IsControl(r) && r != '\t' }); at >= 0 {
			t.Fatalf("%q became %q", text, got)
		}
		if again := Printable(got); again != got {
			t.Fatalf("%q became %q, then %q", text, got, again)
		}
	})
}

// hostile are names that would leave the folder, the file system's rules or each other's files.
var hostile = []string{"plain", "with space", "ümläut", "中文", "..", ".", ".hidden", "a/b", `a\b`, "../../etc/passwd", "con", "NUL.txt", "com1", "COM10", "-rf",
	"a:b", "a*b?", "%2e", "%", "~", "a.log", "a.log.1", "a", strings.Repeat("x", 64), strings.Repeat("😀", 64), strings.Repeat("😀", 63) + "x", "a\x00b",
	strings.Repeat("x", maxStem), strings.Repeat("x", maxStem+1), "trailing.", "|<>\"", "$(id)", "`id`"}

func TestFileNames(t *testing.T) {
	seen := map[string]string{}
	for _, name := range hostile {
		file := fileName(name)
		if other, ok := seen[strings.ToLower(file)]; ok {
			t.Errorf("%q and %q have one file: %s", name, other, file)
		}
		seen[strings.ToLower(file)] = name
		if strings.ContainsAny(file, `/\:*?"<>| `+"\x00") || len(file) > maxStem+len(".log") || !strings.HasSuffix(file, ".log") || filepath.Base(file) != file {
			t.Errorf("%q has file %q", name, file)
		}
		if stem, _, _ := strings.Cut(file, "."); device(stem) {
			t.Errorf("%q has file %q, a device", name, file)
		}
	}
	for name, want := range map[string]string{"plain": "plain.log", "a b": "a%20b.log", "a:b": "a%3Ab.log", "con.x": "%63on.x.log", "com": "com.log"} {
		if got := fileName(name); got != want {
			t.Errorf("%q has file %q, want %q", name, got, want)
		}
	}
	if len(fileName(strings.Repeat("x", maxStem))) != len(fileName(strings.Repeat("x", maxStem+1))) {
		t.Error("a name that is too long is not cut to the limit")
	}
}

// Each name gets a file in the folder, and none gets another's lines.
func TestHostileNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	for _, name := range hostile {
		l := NewServerLog(dir, name, 1, 1, mask.Masker{})
		l.Line("", []byte("I am "+Printable(name)))
		l.Close()
		sink := newSink()
		if err := OpenServerLog(dir, name).Tail(10, sink); err != nil {
			t.Errorf("%q: %v", name, err)
		}
		if got := texts(t, sink.String()); len(got) != 1 || got[0] != "I am "+Printable(name) {
			t.Errorf("%q: %q", name, got)
		}
	}
	if got := filesIn(t, dir); len(got) != len(hostile) {
		t.Errorf("%d files for %d names", len(got), len(hostile))
	}
	if entries, err := os.ReadDir(filepath.Dir(dir)); err != nil || len(entries) != 1 {
		t.Errorf("something lies beside the folder: %v, %v", entries, err)
	}
}
