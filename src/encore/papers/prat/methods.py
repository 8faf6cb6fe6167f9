"""Names of the methods and the families that they are compared in (no heavy import)."""

VANILLA = ("gcn", "gatv2")
EGO = ("gcn_ego", "gatv2_ego", "sage", "fagcn", "h2gcn", "linkx")
PEERS = ("mlp", *VANILLA, *EGO)
OURS = ("riemannian", "prat", "flow_riemannian", "flow_prat")
VARIANTS = ("flow_half", "flow_half_geometry")  # flow_prat from half/half; with a link loss
TUNED = (*PEERS, *OURS)
FACTORS = {
    "riemannian": {"geometry": "riemannian", "update": "residual"},
    "prat": {"geometry": "indefinite", "update": "residual"},
    "flow_riemannian": {"geometry": "riemannian", "update": "flow"},
    "flow_prat": {"geometry": "indefinite", "update": "flow"},
    "flow_half": {"geometry": "indefinite", "update": "flow"},
    "flow_half_geometry": {"geometry": "indefinite", "update": "flow"},
}


def family(method: str) -> str:
    """ "mlp", "vanilla" (no ego residual), "ego" (ego-separated), "ours" or "variant"."""
    for name, members in (
        ("vanilla", VANILLA),
        ("ego", EGO),
        ("ours", OURS),
        ("variant", VARIANTS),
    ):
        if method in members:
            return name
    return "mlp"


def tuned_as(method: str) -> str:
    """The method whose tuned hyper-parameters a method uses."""
    return "flow_prat" if method in VARIANTS else method
