// Package fault tests from outside what the program does when something dies: its servers, its clients, or itself. It
// starts the real binary with a real configuration and real servers, kills what the requirement says, and looks at what
// callers got and at what is left. It knows the bridge by its command line, its file and its protocol only; what runs it
// learns from /proc, so most tests need Linux and say so when they skip.
//
// The soak runs for a few seconds. MCPBRIDGE_SOAK=10m has it run for that long, and lets the slow start of case 28 take its
// full 25 seconds.
package fault
