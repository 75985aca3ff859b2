// This module keeps the Node packages installed below out of the pattern ./... of the parent module.
module mcpbridge/test/peers

go 1.26.8
