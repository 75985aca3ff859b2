// Package procman owns child processes: how one is started, watched, explained and ended together with everything it
// started itself, and when it may be started again.
//
// It knows nothing of MCP, JSON-RPC, HTTP or logging. It hands out byte pipes and facts; whoever speaks over the pipes
// decides what a message is, and whoever receives an [Event] decides whether to log it.
//
// # Trees
//
// A child is the leader of its own process group. Three things end a tree, each for a way of leaving the one before:
//
//   - the group: members are signalled together and before the leader is reaped, because its number may be used again
//     afterwards;
//   - the marker: a variable in the child's environment ([MarkVar]) that its descendants inherit, by which those that
//     made a session of their own are found in /proc (Linux), also by a later run ([Sweep]);
//   - the guard: a second process of the same program that holds one end of a pipe and ends the groups and marked
//     processes it was told of when the other end closes, that is when the bridge has died without saying goodbye
//     ([MaybeGuard]). On Linux the direct child is also killed by the kernel. On Windows a job object does all of this.
//
// # States of a supervisor
//
//	       Start            spawned          Halt, Close, Reject
//	Idle ---------> Starting -------> Running ------------------> Stopping
//	^ ^                |               |   |                       |  |  |
//	| |                | failed        |   | ended, forgiven       |  |  |
//	| |                v      crashed  |   |                       |  |  |
//	| +------------ Backoff <----------+   |                       |  |  |
//	|   time is up,    ^                   |                       |  |  |
//	|   Halt, Forgive  |                   |  ladder done,         |  |  |
//	|                  +-------------------|-----------------------+  |  |
//	|                                      |  after Reject            |  |
//	+--------------------------------------+--------------------------+  |
//	                               ladder done, after Halt               |
//	                                                   after Close       v
//	                                                                  Closed
//
// Close leads from Idle and Backoff to Closed at once, and from Starting once the spawn has failed; a spawn that
// succeeds goes through Running and Stopping.
//
// # States of a breaker
//
// The supervisors of one server share a [Breaker]. It counts processes that did not come up: the spawn failed, or the
// process ended or was rejected before [Supervisor.Healthy] was called for it. What happens after that is counted by each
// supervisor for itself, in a breaker of its own with the same limits.
//
//	        count failures within window          time is up
//	closed ------------------------------> pause -----------> one start is let through
//	 ^  ^                                   | ^                 |   |    ^        |
//	 |  | Healthy of another process, Reset | |   it fails      |   |    +--------+
//	 |  +-----------------------------------+ +-----------------+   |  stopped, forgiven:
//	 |                                            Healthy           |  another one is
//	 +--------------------------------------------------------------+
//
// During the pause, and while the one start is under way, a supervisor in Idle or Backoff reports [CrashLoop].
package procman
