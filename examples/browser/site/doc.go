// Package site serves the page of examples/browser, and builds its program.
//
//	program, err := site.Build(ctx)
//	v := venue.New(nil)
//	defer v.Close()
//	http.Serve(listener, site.New(program, v))
package site
