package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"mcpbridge/bridge/era"
	"mcpbridge/daemon"
)

const doctorLong = `doctor starts a server of the configuration, or reaches a remote one, and tells what it speaks and what each kind of client will get of
it: what passes as it is, what is put into the words of the other protocol era, and what is lost. Nothing is left running.

  mcpbridge doctor files --config mcp.json
  mcpbridge doctor https://mcp.example/mcp --header 'Authorization: Bearer ${env:TOKEN}'

It exits with 1 if the server cannot be used.`

// doctorWait bounds an examination: servers that are downloaded first need long.
const doctorWait = 2 * time.Minute

func newDoctorCommand(g *globals) *cobra.Command {
	var f connectFlags
	cmd := &cobra.Command{
		Use:   "doctor URL|NAME",
		Short: "Examine a server and tell what clients will get of it",
		Long:  doctorLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError(errors.New("name one server: mcpbridge doctor URL, or mcpbridge doctor NAME with an entry of the configuration"))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return doctor(cmd, g, f, args[0]) },
	}
	f.add(cmd)
	return cmd
}

func doctor(cmd *cobra.Command, g *globals, f connectFlags, target string) error {
	cfg, err := connectConfig(cmd, g, f, target)
	if err != nil {
		return err
	}
	d, err := daemon.New(daemon.Options{Config: cfg, Log: zerolog.Nop(), Version: buildVersion()})
	if err != nil {
		return configError(err)
	}
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, doctorWait)
	defer cancel()
	x, err := d.Examine(ctx)
	if err != nil {
		return fmt.Errorf("cannot examine %s: %w", target, err)
	}
	if g.json {
		return json.NewEncoder(cmd.OutOrStdout()).Encode(x)
	}
	printExamination(cmd.OutOrStdout(), x)
	return nil
}

// printExamination tells people what was found out. Revisions whose clients get the same are told together.
func printExamination(w io.Writer, x *daemon.Examination) {
	fmt.Fprintf(w, "%s speaks %s: %s\n", x.Server, strings.Join(x.Speaks, " and "), strings.Join(x.Revisions, ", "))
	if x.Remote != "" {
		fmt.Fprintf(w, "  at %s\n", x.Remote)
	}
	if x.Info != nil {
		fmt.Fprintf(w, "  it is %s\n", x.Info)
	}
	fmt.Fprintf(w, "  it offers %s\n", x.Capabilities)
	told := map[string][]string{}
	var order []string
	for _, v := range slices.Backward(slices.Sorted(maps.Keys(x.Clients))) {
		text := listCarried(x.Clients[v])
		if told[text] == nil {
			order = append(order, text)
		}
		told[text] = append(told[text], v)
	}
	for _, text := range order {
		fmt.Fprintf(w, "\nclients of %s\n%s", strings.Join(told[text], ", "), text)
	}
}

// listCarried is what one kind of client gets, what passes as it is in one line.
func listCarried(list []era.Carried) string {
	var same []string
	var rest strings.Builder
	for _, c := range list {
		if c.How == era.Same {
			same = append(same, c.What)
			continue
		}
		fmt.Fprintf(&rest, "  %-10s  %s: %s\n", c.How, c.What, c.Text)
	}
	if len(same) == 0 {
		return rest.String()
	}
	return fmt.Sprintf("  %-10s  %s\n", era.Same, strings.Join(same, ", ")) + rest.String()
}
