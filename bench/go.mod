module github.com/redial-go/redial/bench

go 1.26.0

require (
	github.com/coder/websocket v1.8.15
	github.com/redial-go/redial v0.0.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/goleak v1.3.0
	golang.org/x/sys v0.49.0
)

require go.yaml.in/yaml/v3 v3.0.5 // indirect

replace github.com/redial-go/redial => ../
