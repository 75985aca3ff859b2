//go:build unix

package procman

import "time"

// pollEvery is how often it is looked whether processes that are not our children have ended.
const pollEvery = 5 * time.Millisecond
