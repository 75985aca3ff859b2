package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"mcpbridge/admin"
	"mcpbridge/admin/client"
	"mcpbridge/config"
)

// reach says how a command finds the running bridge.
type reach struct {
	g       *globals
	control string // path of the control socket, "" to find it out
}

// flag adds the flag that names the control socket.
func (r *reach) flag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&r.control, "control", "", "control socket `PATH` of the bridge (default: what the configuration says)")
	return cmd
}

// places returns the state directory and the control socket of the bridge that serves the configuration. A configuration that is
// broken does not keep anybody from the bridge which runs with the one before, if that can be told to be it.
func (r *reach) places(errOut io.Writer) (state, control string, err error) {
	cfg, err := r.load(errOut)
	if err != nil {
		if usual := config.DefaultControl(); serves(usual, r.g.config) {
			return config.DefaultStateDir(), usual, nil
		}
		return "", "", err
	}
	state, control, err = places(cfg)
	if r.control != "" {
		control = r.control
	}
	return state, control, err
}

func (r *reach) load(errOut io.Writer) (*config.Config, error) {
	path := r.g.config
	if path == "" {
		path = config.DefaultPath()
	}
	cfg, _, err := config.Load(path)
	switch {
	case err == nil:
		return cfg, nil
	case r.control != "", r.g.config == "" && errors.Is(err, fs.ErrNotExist):
		return &config.Config{}, nil
	case r.g.config == "":
		fmt.Fprintf(errOut, "mcpbridge: the configuration cannot be used, so the default control socket is; name another one with --control PATH\n%v\n", err)
		return &config.Config{}, nil
	}
	return nil, configError(fmt.Errorf("cannot tell where the bridge is, name its control socket with --control PATH: %w", err))
}

// serves reports whether the bridge behind a control socket serves that configuration file.
func serves(control, file string) bool {
	path, err := filepath.Abs(file)
	if err != nil {
		return false
	}
	ctx, stop := context.WithTimeout(context.Background(), askTime)
	defer stop()
	s, err := client.Dial(control).Status(ctx)
	return err == nil && s.Bridge.ConfigFile == path
}

// askTime is how long a bridge may take to say which file it serves.
const askTime = 2 * time.Second

func (r *reach) dial(errOut io.Writer) (*client.Client, error) {
	_, control, err := r.places(errOut)
	if err != nil {
		return nil, err
	}
	return client.Dial(control), nil
}

// serverName is a check of positional arguments: the name of one server.
func serverName(cmd *cobra.Command, args []string) error {
	if len(args) == 0 || args[0] == "" {
		return usageError(fmt.Errorf("no server is named; `mcpbridge status` lists them; run `%s --help`", cmd.CommandPath()))
	}
	return atMost(1)(cmd, args)
}

func newRestartCommand(g *globals) *cobra.Command {
	r := reach{g: g}
	return r.flag(&cobra.Command{
		Use:   "restart NAME",
		Short: "Restart one server of the running bridge",
		Long: "restart ends the processes of a server; the next message starts new ones. Calls under way fail, sessions\n" +
			"go on, and nothing else is touched.",
		Args: serverName,
		RunE: func(cmd *cobra.Command, args []string) error {
			bridge, err := r.dial(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			if err := bridge.Restart(cmd.Context(), args[0]); err != nil {
				return err
			}
			return tell(cmd, g, map[string]string{"restarted": args[0]},
				"restarted "+args[0]+": its processes have ended, the next message starts new ones")
		},
	})
}

func newReloadCommand(g *globals) *cobra.Command {
	r := reach{g: g}
	return r.flag(&cobra.Command{
		Use:   "reload",
		Short: "Have the running bridge read its configuration again",
		Long: "reload has the running bridge read its configuration again. Servers whose entry is the same feel nothing.\n" +
			"A file with errors changes nothing; reload then exits with 3.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bridge, err := r.dial(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			done, err := bridge.Reload(cmd.Context())
			if errors.Is(err, admin.ErrConfig) {
				return configError(err)
			}
			if err != nil {
				return err
			}
			return tell(cmd, g, done, describeReload(done))
		},
	})
}

// describeReload says what a reload did.
func describeReload(r admin.Reloaded) string {
	var parts []string
	for _, one := range []struct {
		what  string
		names []string
	}{{"added", r.Added}, {"changed", r.Changed}, {"removed", r.Removed}} {
		if len(one.names) > 0 {
			parts = append(parts, one.what+" "+strings.Join(one.names, ", "))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no server changed")
	}
	if n := len(r.Unchanged); n > 0 {
		parts = append(parts, fmt.Sprintf("%d unchanged", n))
	}
	text := "reloaded: " + strings.Join(parts, "; ")
	if len(r.NeedsRestart) > 0 {
		text += "\nthese settings take effect when the bridge is started again: " + strings.Join(r.NeedsRestart, ", ")
	}
	return text
}

func newDrainCommand(g *globals) *cobra.Command {
	r := reach{g: g}
	return r.flag(&cobra.Command{
		Use:   "drain",
		Short: "Have the running bridge refuse new work and wait until it is idle",
		Long: "drain has the running bridge refuse new work, and returns when all that is open has been answered. The bridge\n" +
			"keeps running and refusing until it is stopped. Ctrl-C ends the waiting, not the refusing.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			bridge, err := r.dial(cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), interrupts()...)
			defer stop()
			fmt.Fprintln(cmd.ErrOrStderr(), "mcpbridge: waiting until nothing is open; new work is refused from now on")
			err = bridge.Drain(ctx)
			if ctx.Err() != nil {
				return errors.New("stopped waiting; new work stays refused")
			}
			if err != nil {
				return err
			}
			return tell(cmd, g, map[string]bool{"drained": true}, "drained: nothing is open any more; stop the bridge when you like")
		},
	})
}

// tell prints the outcome of a command: v for machines, text for people.
func tell(cmd *cobra.Command, g *globals, v any, text string) error {
	if g.json {
		return printJSON(cmd.OutOrStdout(), v)
	}
	_, err := fmt.Fprintln(cmd.OutOrStdout(), text)
	return err
}

func printJSON(w io.Writer, v any) error {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// interrupts are the signals that ask a command to end.
func interrupts() []os.Signal { return []os.Signal{os.Interrupt, syscall.SIGTERM} }
