"""Exports of fitted models to where models run: ONNX graphs and MLflow folders."""

from offmap.export.checking import Check
from offmap.export.mlflow_folder import export_mlflow
from offmap.export.onnx_folder import export_onnx
from offmap.export.scoring import CannotExport

__all__ = ["CannotExport", "Check", "export_mlflow", "export_onnx"]
