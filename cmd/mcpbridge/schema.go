package main

import (
	"github.com/spf13/cobra"

	"mcpbridge/config"
)

func newSchemaCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON Schema of the configuration file",
		Long: "schema prints the JSON Schema (2020-12) of the configuration file. Editors that know it complete\n" +
			"and explain the settings: write it into a file and name that in the key $schema.",
		Args: atMost(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := cmd.OutOrStdout().Write(config.Schema())
			return err
		},
	}
}
