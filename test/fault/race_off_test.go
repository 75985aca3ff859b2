//go:build !race

package fault

// shadow is how much more memory a bridge built with the race detector may keep: this one is not.
const shadow = 1
