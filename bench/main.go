// Command bench shows what a retry policy does to a server, by simulation and with real
// herds on real sockets. "bench" alone lists the commands; README.md says more.
package main

import (
	"os"
	"slices"

	"github.com/redial-go/redial/bench/articles"
	"github.com/redial-go/redial/bench/herd"
	"github.com/redial-go/redial/bench/internal/cli"
	"github.com/redial-go/redial/bench/report"
	"github.com/redial-go/redial/bench/soak"
)

func main() {
	herd.ServeChild()
	if soak.IsServer() {
		os.Exit(soak.ServerMain())
	}
	os.Exit(bench().Main())
}

func bench() cli.Program {
	models := slices.Concat(articles.Models(), herd.Models())
	own := []cli.Command{report.Command(), soak.Command(), cli.Sim(models)}
	return cli.Program{
		Name:     "bench",
		Commands: slices.Concat(herd.Commands(), articles.Commands(), own),
		Others: []cli.Other{{
			Name:    "dial",
			Summary: "what a dialer.Dialer does to the clients that it dials for",
			Line:    "go -C interop run ./dial", // a module of its own, because it needs the clients
		}},
	}
}
