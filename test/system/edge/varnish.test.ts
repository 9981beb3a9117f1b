import { startVarnish } from "../../support/edge.ts"
import { cacheSuite } from "./suite.ts"

cacheSuite({ name: "Varnish", start: startVarnish })
