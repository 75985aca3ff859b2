package procman

import "strings"

var baseNames = []string{
	"PATH", "HOME", "LANG", "TMPDIR", "TMP", "TEMP", "USER", "LOGNAME", "SHELL", "TERM", "TZ",
	"SYSTEMROOT", "WINDIR", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
	"USERPROFILE", "HOMEDRIVE", "HOMEPATH", "USERNAME", "NUMBER_OF_PROCESSORS", "PROCESSOR_ARCHITECTURE", "OS",
}

var basePrefixes = []string{"LC_", "XDG_", "PROGRAMFILES"}

// foldName brings the name of a variable into the form in which names are compared.
func foldName(name string) string { return strings.ToUpper(name) }
