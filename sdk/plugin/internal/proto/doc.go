// Package proto holds the generated code of the agent protocol. Only
// package plugin uses it.
package proto

// The versions of the generators are listed here because no module file has them: protoc
// 3.21.12, protoc-gen-go 1.36.12, protoc-gen-go-grpc 1.6.2.
//go:generate protoc --go_out=. --go_opt=paths=source_relative --go-grpc_out=. --go-grpc_opt=paths=source_relative agent.proto
