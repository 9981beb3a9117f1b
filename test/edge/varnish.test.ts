import { noVarnish, varnishBefore } from "../support/edge.ts"
import { cacheSuite } from "./suite.ts"

cacheSuite({ name: "Varnish", missing: noVarnish, before: varnishBefore })
