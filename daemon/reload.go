package daemon

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"mcpbridge/admin"
	"mcpbridge/config"
)

// settle is how long a configuration file has to be left alone before a change counts: editors write in several steps.
const settle = 200 * time.Millisecond

// retireTime is how long calls may go on at a server that a reload has removed or changed.
const retireTime = time.Minute

// reloaded is the outcome of a reload.
type reloaded struct {
	at  time.Time
	err error
}

var errNothingToReload = errors.New("there is no configuration file to reload: the bridge serves a command given on its command line")

// Reload reads the configuration again and changes what has to change: servers that are the same notice nothing. A
// configuration with an error changes nothing at all.
func (d *Daemon) Reload(ctx context.Context) (admin.Reloaded, error) {
	if d.opt.Load == nil {
		return admin.Reloaded{}, errNothingToReload
	}
	d.reload.Lock()
	defer d.reload.Unlock()
	d.seen.Store(Fingerprint(d.opt.File)) // first: a change that comes between is seen later
	c, err := d.read(ctx)
	d.last.Store(&reloaded{time.Now(), err})
	if err != nil {
		d.log.Error().Err(err).Msg("configuration is not reloaded; everything goes on as before")
		return admin.Reloaded{}, fmt.Errorf("%w: %w", admin.ErrConfig, err)
	}
	d.turn.Lock()
	defer d.turn.Unlock()
	if d.stopped {
		return admin.Reloaded{}, errors.New("the bridge is stopping")
	}
	return d.swap(c), nil
}

// readTime is how long the reading of a configuration, and of the files it names, may take: a file system may hang.
const readTime = 10 * time.Second

// read loads the configuration, and does not wait for one that cannot be read in time.
func (d *Daemon) read(ctx context.Context) (*config.Config, error) {
	type outcome struct {
		c   *config.Config
		err error
	}
	ctx, stop := context.WithTimeoutCause(ctx, readTime, errors.New("the configuration, or a file it names, cannot be read in time"))
	defer stop()
	done := make(chan outcome, 1)
	go func() { // ends when the file system answers
		c, err := d.opt.Load()
		done <- outcome{c, err}
	}()
	select {
	case o := <-done:
		return o.c, o.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-d.stopping:
		return nil, errors.New("the bridge is stopping")
	}
}

// swap replaces the table, then retires what is in it no more.
func (d *Daemon) swap(c *config.Config) admin.Reloaded {
	old := d.table.Load()
	plan := config.Diff(old.cfg, c)
	for _, e := range old.endpoints {
		if !slices.Contains(plan.Same, e.name) {
			e.sessions.Flush() // what the next endpoint of the name will read
		}
	}
	next := d.build(c, old, plan.Same)
	for _, e := range next.endpoints {
		if !slices.Contains(old.endpoints, e) {
			e.start(d)
		}
	}
	d.budget.Resize(c.Limits.Processes)
	d.sessions.Resize(c.Limits.Sessions)
	d.bodies.Resize(int64(c.Limits.BodyTotal))
	d.table.Store(next)
	for _, e := range old.endpoints {
		if !slices.Contains(next.endpoints, e) {
			d.jobs.Go(func() { e.retire(d.life) })
		}
	}
	later := append(plan.Restart, fixed(plan.Root)...)
	d.tell(plan, later)
	return admin.Reloaded{Added: plan.Added, Changed: plan.Changed, Removed: plan.Removed, Unchanged: plan.Same, NeedsRestart: later}
}

// live are the settings outside the servers that take effect at once. The others hold for what is built anew only.
var live = map[string]bool{"allowedHosts": true, "allowedOrigins": true, "limits.bodyBytes": true, "limits.bodyTotalBytes": true,
	"limits.processes": true, "limits.sessions": true, "limits.shutdown": true}

func fixed(settings []string) []string {
	return slices.DeleteFunc(slices.Clone(settings), func(s string) bool { return live[s] })
}

func (d *Daemon) tell(p config.Plan, later []string) {
	d.log.Info().Strs("added", p.Added).Strs("changed", p.Changed).Strs("removed", p.Removed).Int("unchanged", len(p.Same)).
		Msg("configuration is reloaded")
	if len(later) > 0 {
		d.log.Warn().Strs("settings", later).Msg("these settings take effect when the bridge is started again")
	}
}

// watch reloads when the configuration file changes. Its folder is watched, because editors and Kubernetes replace files.
func (d *Daemon) watch(ctx context.Context) {
	if d.opt.File == "" || d.opt.Load == nil {
		return
	}
	w, err := fsnotify.NewWatcher()
	if err == nil {
		defer w.Close()
		err = w.Add(filepath.Dir(d.opt.File))
	}
	if err != nil {
		d.log.Warn().Err(err).Msg("configuration file is not watched; use `mcpbridge reload` after a change")
		return
	}
	d.follow(ctx, w)
}

// follow reloads whenever the content of the file is another than what was loaded last, and has been left alone for a moment. What
// else happens in the folder makes it look too, since the file may be a link, but does not put that off.
func (d *Daemon) follow(ctx context.Context, w *fsnotify.Watcher) {
	quiet := time.NewTimer(settle) // it may have changed before it was watched
	defer quiet.Stop()
	armed := true
	for {
		select {
		case <-ctx.Done():
			return
		case ev, ok := <-w.Events:
			if !ok {
				return
			}
			if own := filepath.Base(ev.Name) == filepath.Base(d.opt.File); own || !armed {
				quiet.Reset(settle)
				armed = true
			}
		case err := <-w.Errors:
			d.log.Warn().Err(err).Msg("watching the configuration file")
		case <-quiet.C:
			armed = false
			if d.changed() {
				_, _ = d.Reload(ctx) // it has said what is wrong
			}
		}
	}
}

// changed reports whether the file holds something else than what was loaded last.
func (d *Daemon) changed() bool {
	now := Fingerprint(d.opt.File)
	return now != "" && now != d.seen.Load()
}

// Fingerprint tells the contents of a file apart, "" if it cannot be read: between two steps of an editor it may be away.
func Fingerprint(path string) string {
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return ""
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(data)
	var b strings.Builder
	b.Write(sum[:])
	return b.String()
}
