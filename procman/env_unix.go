//go:build unix

package procman

var baseNames = []string{
	"PATH", "HOME", "LANG", "TMPDIR", "TMP", "TEMP", "USER", "LOGNAME", "SHELL", "TERM", "TZ",
}

var basePrefixes = []string{"LC_", "XDG_"}

// foldName brings the name of a variable into the form in which names are compared.
func foldName(name string) string { return name }
