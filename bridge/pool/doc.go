// Package pool decides which link serves whom: one for each legacy session, for each principal and profile, for all, or for one
// request, as the server's isolation says (translation 14, SEC-08). It bounds how many processes run, ends those nobody
// needs, and keeps some started ahead of use. It knows neither fronts nor how a server is reached.
//
// # Seats
//
// A process needs a seat: one of the server's (Config.Max) and one of the bridge's (Budget). A link takes a seat when it opens
// its server and gives it back when the process is gone, so there are never more processes than the limits say:
//
//	           free seat, or a spare
//	no seat ───────────────────────▶ opening ────────────▶ live
//	   │  ▲                           ▲  │ failed           │ ended, halted
//	   │  │ withdrawn, refused        │  ▼                  ▼
//	   ▼  │                  granted  │ gone? ◀────────────┘
//	waiting ──────────────────────────┘  │ yes: no seat; opened again before: opening
//
// Where no seat is free, an opening makes room: of a spare first, else of the process that was not used for longest, if that is
// Config.Yield at least. It waits in the order of arrival, at most Config.Wait. Seats on their way out count for those who
// wait, so that nobody's process is ended where another's end is enough.
//
// # Decision: who holds a seat
//
// Context. Seats used to belong to links. A legacy client that goes away without DELETE leaves its session, and so its link,
// until the session expires; a few of them locked everybody out.
//
// Choice. The process holds the seat, its link does not. A link that was not used for a while is rested: its process ends, its
// session lives on and starts another with its next message (design decision 7). All that concerns seats is guarded by one
// lock in the Budget, which is never held while a link or a back is called.
//
// Rejected. Shorter expiry of sessions (clients come back after hours). Refusing newcomers at once (a bounded wait is mostly
// enough: sessions end all the time). A lock for each pool (who waits for the bridge's seats has to see all pools, in an
// order of locks nobody would keep). Giving a crashed process's seat back only when another asks for it (spares and status would
// take dead processes for living ones).
//
// Consequence. What a legacy server kept in memory for an abandoned session is lost when others need the place. The wait for a seat
// is part of the time a server has to start. A back that can outlive its connection says when nothing of it runs (Gone); of one
// that cannot say, the end of the connection counts as the end of the process.
package pool
